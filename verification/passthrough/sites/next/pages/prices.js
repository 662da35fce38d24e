export const getServerSideProps = async () => ({ props: { text: 'GOODS' } });
export default function Prices({ text }) {
  return text;
}
