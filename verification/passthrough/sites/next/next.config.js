/** Locales and a rewrite, as many sites have them. */
export default {
  i18n: { locales: ['en', 'de'], defaultLocale: 'en' },
  rewrites: async () => [{ source: '/shop/:path*', destination: '/:path*' }],
};
