export default function quote(_req, res) {
  res.json({ text: 'GOODS' });
}
