export const getServerSideProps = async ({ params }) => ({ props: { text: `GOODS of ${params.city}` } });
export default function Report({ text }) {
  return text;
}
