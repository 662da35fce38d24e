export const getServerSideProps = async () => ({ props: { text: 'ABOUT' } });
export default function About({ text }) {
  return text;
}
