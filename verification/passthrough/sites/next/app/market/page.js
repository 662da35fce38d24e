export const dynamic = 'force-dynamic';
export default function Market() {
  return <p>GOODS</p>;
}
