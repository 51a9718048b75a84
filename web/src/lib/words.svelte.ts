// What the portal says, in each of its languages, from one table. What the controller says is English and stays so.

const table = {
  title: ["suiro portal", "suiro ポータル"],
  skip: ["To the contents", "本文へ"],
  user: ["User", "ユーザー名"],
  password: ["Password", "パスワード"],
  signIn: ["Sign in", "サインイン"],
  signOut: ["Sign out", "サインアウト"],
  signedInAs: ["{user}, {role}", "{user}（{role}）"],
  ended: ["The session has ended. Sign in again.", "セッションが終了しました。もう一度サインインしてください。"],
  unreachable: ["The controller does not answer.", "コントローラーが応答しません。"],
  sites: ["Sites", "サイト"],
  slices: ["My slices", "スライス"],
  allSlices: ["Slices", "スライス"],
  events: ["Events", "イベント"],
  language: ["日本語", "English"],
  loading: ["Loading…", "読み込み中…"],
  site: ["Site", "サイト"],
  nodes: ["Nodes here", "稼働ノード"],
  cores: ["Cores free", "空きコア"],
  memory: ["Memory free", "空きメモリ"],
  kinds: ["Kinds of guest", "ゲストの種類"],
  segments: ["Between sites", "サイト間"],
  segment: ["Segment", "区間"],
  rateFree: ["Rate free", "空き帯域"],
  delay: ["Delay", "遅延"],
  ofAll: ["{free} of {all}", "{all} 中 {free}"],
  name: ["Name", "名前"],
  state: ["State", "状態"],
  until: ["Until", "期限"],
  faults: ["Waits for", "待機中"],
  forever: ["deleted", "削除まで"],
  objects: ["Switches, guests, links", "スイッチ・ゲスト・リンク"],
  noSlices: ["There are no slices yet.", "スライスはまだありません。"],
  newSlice: ["New slice", "新しいスライス"],
  template: ["From a template", "テンプレートから"],
  line: ["A line: a switch and a guest at each site", "直線: 各サイトにスイッチとゲスト"],
  empty: ["Empty", "空"],
  fromFile: ["From files", "ファイルから"],
  fromFileHelp: ["The slice's file, and those that it names.", "スライスのファイルと、そこで参照されるファイル。"],
  noSliceFile: ["None of the files is a slice's: its first key is suiro.", "スライスのファイルがありません（先頭のキーは suiro）。"],
  tenant: ["Tenant", "テナント"],
  open: ["Open", "開く"],
  remove: ["Delete", "削除"],
  reallyRemove: ["Delete slice {name}? All that runs in it ends.", "スライス {name} を削除しますか？ 中で動いているものはすべて終了します。"],
  cancel: ["Cancel", "キャンセル"],
  close: ["Close", "閉じる"],
  topology: ["Topology", "トポロジー"],
  topologySays: ["{switches} switches, {guests} guests, {links} links. The table has the same.", "スイッチ {switches}、ゲスト {guests}、リンク {links}。表にも同じ内容があります。"],
  objectsTable: ["Objects", "一覧"],
  kind: ["Kind", "種類"],
  switch: ["switch", "スイッチ"],
  guest: ["guest", "ゲスト"],
  link: ["link", "リンク"],
  wire: ["wire", "接続"],
  external: ["external", "外部"],
  node: ["Node", "ノード"],
  file: ["File", "ファイル"],
  fileLabel: ["The slice's file, YAML", "スライスのファイル（YAML）"],
  tools: ["Drawing tools", "描画ツール"],
  select: ["Select and move", "選択・移動"],
  addSwitch: ["Switch", "スイッチ"],
  addGuest: ["Guest", "ゲスト"],
  addLink: ["Link", "リンク"],
  atSite: ["At site", "サイト"],
  placeHint: ["Click where it shall be.", "置く場所をクリックしてください。"],
  linkHint: ["Click its two ends, one after the other.", "両端を順にクリックしてください。"],
  linkFrom: ["From", "始点"],
  linkTo: ["To", "終点"],
  add: ["Add", "追加"],
  takeOut: ["Take out", "取り除く"],
  badEnds: ["A link needs two ends, one of them a switch.", "リンクには二つの端が必要で、片方はスイッチです。"],
  plan: ["Plan", "プラン"],
  showPlan: ["Show the plan", "プランを表示"],
  apply: ["Apply this plan", "このプランを適用"],
  noChange: ["Nothing changes.", "変更はありません。"],
  planOld: ["The file has changed since this plan: show it again.", "ファイルが変わりました。プランを再表示してください。"],
  applied: ["Applied: generation {generation}.", "適用しました: 世代 {generation}。"],
  comes: ["comes", "追加"],
  goes: ["goes", "削除"],
  changes: ["changes", "変更"],
  at: ["at {place}", "@ {place}"],
  anew: ["made anew", "作り直し"],
  interrupts: ["interrupts {what}", "中断: {what}"],
  interruptsNothing: ["It interrupts nothing.", "中断はありません。"],
  interruptsSome: ["It interrupts {count} of {all}.", "{all} 件中 {count} 件が中断されます。"],
  generation: ["generation {generation}", "世代 {generation}"],
  remedy: ["What to do", "対処"],
  lineNumber: ["line {line}", "{line} 行目"],
  measured: ["Measured", "測定"],
  wished: ["Wished for", "希望"],
  roundTrip: ["Round trip", "往復時間"],
  lost: ["Probes lost, {from} → {to}", "喪失プローブ {from} → {to}"],
  lostOf: ["{lost} of {probes}", "{probes} 中 {lost}"],
  rate: ["Rate", "帯域"],
  mtu: ["MTU", "MTU"],
  maxDelay: ["Longest delay", "最大遅延"],
  notSaid: ["not said", "指定なし"],
  within: ["within one node", "ノード内"],
  addresses: ["Addresses", "アドレス"],
  fileOf: ["reset to what is applied", "適用済みに戻す"],
  filter: ["Filter", "絞り込み"],
  export: ["Save as a file", "ファイルに保存"],
  when: ["When", "時刻"],
  what: ["What", "対象"],
  says: ["Says", "内容"],
  noEvents: ["Nothing has happened since this page was opened.", "このページを開いてからイベントはありません。"],
  live: ["live", "接続中"],
  notLive: ["not live: connecting again", "切断: 再接続中"],
  roleViewer: ["viewer", "閲覧者"],
  roleUser: ["user", "利用者"],
  roleOperator: ["operator", "管理者"],
  notFound: ["There is no such page.", "ページがありません。"],
  gone: ["The slice is gone.", "スライスは削除されました。"],
  building: ["building", "構築中"],
  proving: ["proving", "検証中"],
  ready: ["ready", "利用可能"],
  degraded: ["degraded", "劣化"],
  deleting: ["deleting", "削除中"],
  up: ["up", "接続"],
  down: ["down", "切断"],
  lossy: ["lossy", "損失あり"],
} as const;

export type Word = keyof typeof table;
type Language = "en" | "ja";

const KEPT = "suiro-language";

function first(): Language {
  try {
    const kept = localStorage.getItem(KEPT);
    if (kept === "en" || kept === "ja") return kept;
  } catch {
    // A browser that keeps nothing has its own language.
  }
  return navigator.language.startsWith("ja") ? "ja" : "en";
}

class Words {
  language: Language = $state(first());

  constructor() {
    document.documentElement.lang = this.language;
  }

  other() {
    this.language = this.language === "en" ? "ja" : "en";
    document.documentElement.lang = this.language;
    try {
      localStorage.setItem(KEPT, this.language);
    } catch {
      // It lasts until the page is left.
    }
  }
}

export const words = new Words();

/** A sentence of the table, with values in place of names in braces. */
export function t(word: Word, values: Record<string, string | number> = {}): string {
  const text = table[word][words.language === "en" ? 0 : 1];
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}

/** A word of the API that the table may have: a state. */
export function stateWord(word: string): string {
  return word in table ? t(word as Word) : word;
}
