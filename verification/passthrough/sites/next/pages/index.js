export default function Home() {
  return 'HOME';
}
