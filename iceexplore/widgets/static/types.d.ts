// The types that several modules share: the model, the traits that Python and the browser exchange, and the messages.
// What each trait is for is documented at its class in Python; here is its shape, as the browser reads it.
// The scripts that are sent to the browser do not contain this file.

// The model ------------------------------------------------------------------------------------------------------------

/** anywidget's model, as far as the widgets use it: https://anywidget.dev/en/afm/ */
export interface AnyModel {
  // deno-lint-ignore no-explicit-any
  get(name: string): any;
  set(name: string, value: unknown): void;
  save_changes(): void;
  send(message: unknown): void;
  // deno-lint-ignore no-explicit-any
  on(event: string, run: (message: any) => void): void;
  // deno-lint-ignore no-explicit-any
  off(event: string, run: (message: any) => void): void;
}

/** What anywidget calls `render` with. */
export interface RenderContext {
  model: AnyModel;
  el: HTMLElement;
}

/** The traits whose value is a request of the browser: each has a number, `n`. */
export type RequestName =
  | "search"
  | "wanted"
  | "scan_draft"
  | "scan_ask"
  | "rows_ask"
  | "scan_picture_asked"
  | "commit_asked"
  | "doctor_asked"
  | "health_asked"
  | "history_asked"
  | "omni";

/** What `createModel` of `shell.js` adds to the traits. */
export interface ModelMethods {
  /** Set a trait in the browser alone. */
  set<K extends keyof Traits>(name: K, value: Traits[K]): void;
  /** Set a trait and send it to Python. */
  save<K extends keyof Traits>(name: K, value: Traits[K]): void;
  /** Set a trait to a request with the next number, and send it. Returns the number, which the answer has too. */
  request(name: RequestName, request: object): number;
  /**
   * The same for requests each of which must be carried out: notebooks merge changes of a trait while Python is busy,
   * so each request also has the ones before it, as `earlier`.
   */
  requestEach(name: RequestName, request: object): number;
  /** Send a message to Python. */
  send(message: unknown): void;
  /** Call `run` on an event of anywidget's model, until the widget is removed. */
  // deno-lint-ignore no-explicit-any
  on(event: string, run: (message: any) => void): void;
  /** Call `run` when one of these traits changes, until the widget is removed. */
  onChange(names: string | string[], run: () => void): void;
  /** Call `run` now, and when one of these traits changes. */
  follow(names: string | string[], run: () => void): void;
  /** Call `run` when the widget is removed. */
  onEnd(run: () => void): void;
  /** Show for a while that something was done. */
  say(text: string): void;
  /** Whether the widget has a height of its own, and little of it. */
  isShort(): boolean;
  /** Call `run` when `isShort` changes. */
  onRoom(run: () => void): void;
}

/** The traits that a session of the browser remembers. */
export type RoomName = "text_size" | "head_collapsed" | "collapsed" | "details_hidden";

/** The model as views get it: traits are its properties, beside the methods above. */
export type Model = Traits & ModelMethods;

/**
 * What a module exports for a widget or a tab: a function that returns the element of a view. `root` is the element of
 * the widget, to which the shell will add it.
 */
export type View = (model: Model, root: HTMLElement) => HTMLElement;

// Traits ---------------------------------------------------------------------------------------------------------------

/** The traits of the explorer. Other widgets have some of them; a saved page has those that Python wrote into it. */
export interface Traits {
  // core/
  title: string;
  badges: string[];
  styles: Styles;
  /** The selected snapshot, as a caption of pictures. */
  caption?: string;
  selection: Selection;
  busy: string;
  error: Partial<ErrorText>;
  answered: number;
  cancelled: number;
  height: string;
  text_size: number | null;
  head_collapsed: boolean | null;
  details_hidden: boolean | null;
  shortcuts: [place: string, keys: [names: string[], what: string][]][];
  // the explorer
  parts: [key: string, title: string][];
  tab: string;
  script: DataView<ArrayBuffer>;
  scripts?: Record<string, DataView<ArrayBuffer>>;
  // navigation/
  history?: { back: string; forward: string };
  history_asked: { n?: number; by?: number };
  omni: { n?: number; text?: string };
  omni_found: {
    n?: number;
    groups?: [title: string, results: [name: string, note: string, does: OmniAction][]][];
    busy?: boolean;
    note?: string;
  };
  // tree/
  nodes: Nodes;
  roots: string[];
  expanded: string[];
  compared: { against?: string; text?: string; counts?: Record<string, string> };
  search: { n?: number; text?: string };
  found: SearchAnswer;
  wanted: { n?: number; format?: string };
  written: { n?: number; format?: FileFormat; text?: string };
  // detail/
  detail: Detail;
  // grid/
  query: Record<string, Query>;
  pages: Record<string, Page>;
  // timeline/
  snapshots: Snapshot[];
  legend: Record<Measure, Block[]>;
  scale: "steps" | "time";
  measure: Measure;
  comparison: { against?: string; snapshot?: string; differences?: Block[] };
  writers: string[];
  broken: Record<string, string>;
  totals: boolean;
  collapsed: boolean | null;
  // file_map/
  file_map: FileCells;
  file_filter: string;
  file_color: FileColor;
  // problems/
  problems: Problems;
  severities: Severity[];
  read_all: number;
  doctor_asked?: { n?: number; do?: string };
  health: { blocks?: Block[] };
  health_asked?: { n?: number; do?: string };
  doctor_report: DoctorReport;
  doctor_effects: Effect[];
  doctor_draft: DoctorDraft;
  doctor_running: boolean;
  repair_plan: RepairPlan;
  repair_draft: { before?: string; after?: string };
  repair_before_nodes: Nodes;
  repair_before_roots: string[];
  repair_before_expanded: string[];
  repair_after_nodes: Nodes;
  repair_after_roots: string[];
  repair_after_expanded: string[];
  // deletes/
  vector_of: { node?: string; path?: string; footer?: boolean; missed?: string };
  vector: Partial<Vector>;
  // scan_lab/
  scan_filter: string;
  scan_columns: string[];
  scan_row_groups: boolean;
  scan_plan: ScanAnswer;
  scan_nodes: Nodes;
  scan_roots: string[];
  scan_expanded: string[];
  scan_why: { id?: string; blocks?: Block[] };
  scan_draft: { n?: number; text?: string; at?: number };
  scan_hint: ScanHint;
  scan_ask: { n?: number; want?: string };
  scan_examples: ScanExamples;
  scan_advice: { of?: string; blocks?: Block[]; missed?: string };
  scan_count: { of?: string; text?: string };
  scan_recent: string[];
  scan_tab: string;
  scan_reasons: { of?: string; reasons?: [text: string, table: string, filters: Filter[]][]; missed?: string };
  scan_view: string;
  scan_range_of: { column?: string; by?: string };
  scan_range: Partial<RangeAnswer>;
  scan_picture_asked: { n?: number; theme?: string; what?: string };
  scan_picture: { n?: number; svg?: string };
  // rows/
  rows_filter: string;
  rows_history: boolean;
  rows_answer: RowsAnswer;
  rows_count: { of?: string; text?: string };
  rows_ask: { n?: number; want?: string };
  rows_story: RowsStory;
  // commit_lab/
  commit_form: CommitForm;
  commit_draft: CommitDraft;
  commit_asked: { n?: number; do?: string };
  commit_line: CommitLine;
  commit_refused: { blocks?: Block[]; figure?: Figure };
  commit_saved: { blocks?: Block[] };
  commit_report: CommitReport;
  commit_item: CommitItem;
  commit_before_nodes: Nodes;
  commit_before_roots: string[];
  commit_before_expanded: string[];
  commit_after_nodes: Nodes;
  commit_after_roots: string[];
  commit_after_expanded: string[];
  // ipywidgets' own; `comm_live` is false where no Python is behind the model
  layout?: { comm_live?: boolean };
}

/** What a result of the omnibox does: set traits, select, or press the first button that has one of these names. */
export interface OmniAction {
  // deno-lint-ignore no-explicit-any
  set?: Record<string, any>;
  select?: Partial<Selection>;
  press?: string[];
}

/** What is selected: ids of snapshots are digits, "" for none. `against` is the snapshot to compare with. */
export interface Selection {
  snapshot: string;
  against: string;
  node: string;
}

export interface ErrorText {
  text: string;
  advice: string;
}

/** The look of a kind of node, of a mark (`mark:…`) or of an operation (`operation:…`); "" is all others'. */
export interface Style {
  light: string;
  dark: string;
  title?: string;
  /** Of a kind of node, the heading of its column. */
  layer?: string;
  /** Of a kind of node, the colours that its cards are filled with. */
  fills?: [light: string, dark: string];
  /** A letter or sign. */
  sign?: string;
  /** SVG paths to fill and to stroke. */
  icon?: [fill: string, line: string];
  /** The corners of a shape of radius 1; none for a circle. */
  corners?: [x: number, y: number][];
}
export type Styles = Record<string, Style>;

// Trees ----------------------------------------------------------------------------------------------------------------

export interface TreeNode {
  kind: string;
  label: string;
  /** Of a file or manifest, what tells it apart from its siblings; then the note is its partition. */
  title?: string;
  note: string;
  marks: string[];
  /** Of a delete, the ids of the nodes that it applies to. */
  applies?: string[];
  tooltip?: string;
  /** Whether it can never have children. */
  leaf: boolean;
  /** null while they have not been read. */
  children: string[] | null;
  /** Why a scan skips it. */
  reason?: string;
  /** Of a node with a size, how strong its cell is, from 0 to 5. */
  shade?: number;
  /** Of a node that stands for many others, a cell for each or for some together. */
  cells?: FoldedCells;
}

/** Of strings, each character is of one cell. */
export interface FoldedCells {
  names: string[];
  kinds: string;
  shades: string;
  changes: string;
  /** The id of a cell's node is its kind, what it is below, and its row. */
  below: string;
  rows: number[];
}
export type Nodes = Record<string, TreeNode>;

export type FileFormat = "mermaid" | "dot";

export interface SearchAnswer {
  n?: number;
  hits?: string[];
  /** Whether the search goes on. */
  busy?: boolean;
  /** Whether there are more hits than listed. */
  more?: boolean;
}

/** A node that is visible: its place among the rows, and the place of its card, in px of a picture at scale 1. */
export interface TreeRow {
  id: string;
  node: TreeNode;
  parent: string | null;
  /** From 1. */
  level: number;
  /** Its index among its siblings, and how many those are. */
  index: number;
  of: number;
  open: boolean;
  children: TreeRow[];
  /** Whether its card is in a block of several columns. */
  inBlock: boolean;
  /** Whether it is a small square, as it is one of many siblings. */
  isCell: boolean;
  x: number;
  y: number;
  width: number;
  height: number;
}

/** A frame around the cards of many leaves. */
export interface TreeBlock {
  parent: TreeRow | null;
  x: number;
  y: number;
  width: number;
  height: number;
}

/** A forest with the places of its cards. */
export interface Arrangement {
  rows: TreeRow[];
  byId: Map<string, TreeRow>;
  blocks: TreeBlock[];
  /** The headings of the columns. */
  columns: { x: number; width: number; title: string }[];
  width: number;
  height: number;
}

/** What the picture and the list of a tree emphasize. */
export interface TreeState {
  selected: string | null;
  /** The node with the keyboard focus. */
  focus: string | null;
  /** The node under the pointer. */
  hovered: string | null;
  /** The nodes that a search found. */
  hits: Set<string>;
}

// Details --------------------------------------------------------------------------------------------------------------

/** A field's name and value; the third is the value without signs for control characters, where it differs. */
export type Fact = [name: string, text: string, exact?: string];

export interface Detail {
  id?: string;
  kind: string;
  kind_title: string;
  title: string;
  path?: string;
  /** The path without signs for control characters. */
  copy?: string;
  problems?: {
    severity: Severity;
    title: string;
    text: string;
    evidence?: string;
    advice: string;
    /** What to select: the problem is another node's. */
    go?: Partial<Selection>;
  }[];
  /** Whether recorded numbers were counted. */
  counted?: string;
  facts?: Fact[];
  more?: Fact[];
  /** By field: its meaning, the section of the specification with its address, and keys of `open`. */
  help?: Record<string, Help>;
  /** What the V4 proposal leaves open: a title, quotations, and what is written here. */
  open?: Record<string, OpenPoint>;
  tables?: { of: string; key: string; title: string }[];
}

/** What a field is: its meaning, the section of the spec and its URL, and keys of open points. */
export type Help = [meaning: string, section?: string, link?: string, open?: string[]];
export type OpenPoint = [title: string, says: string[], answer: string];

// Grids ----------------------------------------------------------------------------------------------------------------

export type Operator = "contains" | "=" | "!=" | "<" | "<=" | ">" | ">=" | "null" | "not null";

/** A filter of one column, by its index, or of any (null). */
export interface Filter {
  column: number | null;
  op: Operator;
  value: string;
}

export type Sort = [column: number, direction: "asc" | "desc"];

/** What is asked of a grid: table `table` of the owner `of`. */
export interface Query {
  n?: number;
  of?: string;
  table?: string;
  page?: number;
  sort?: Sort | null;
  filters?: Filter[];
  columns?: number[];
  /** Ask for the page with the row of this node. */
  node?: string;
}

export interface Column {
  name: string;
  /** Whether its values are numbers, which are aligned right. */
  right?: boolean;
  doc?: string;
  /** Whether it names the rows; it is the first. */
  head?: boolean;
  /** The unit of its exact values. */
  unit?: string;
}

/** A page of a table; `shown` are the indexes of the columns in `rows`. */
export interface TablePage {
  n?: number;
  of: string;
  table: string;
  sort: Sort | null;
  filters: Filter[];
  columns: Column[];
  shown: number[];
  /** The exact values. */
  rows: (string | null)[][];
  /** What cells show instead of exact values, by column. */
  texts?: Record<string, (string | null)[]>;
  /** The per cent of each value of the column's largest, by column. */
  bars?: Record<string, (number | null)[]>;
  nodes: (string | null)[];
  page: number;
  pages: number;
  size: number;
  total: number;
  whole: number;
  /** The numbers of the rows in the table, whatever its order. */
  numbers?: number[];
  /** The fields that columns show, by index. */
  help?: Record<string, Help>;
  open?: Record<string, OpenPoint>;
  /** Shown above the table. */
  above?: Block[];
  /** Shown where there are no rows. */
  none?: string;
  /** Says that rows may be missing. */
  lacks?: string;
  /** Says that there are more rows than the table has. */
  preview?: string;
  /** Says why the filter that was asked for is invalid. */
  refused?: string;
  /** Whether the filter may become valid when more is typed. */
  unfinished?: boolean;
  /** What each filter was understood as, if it is of one column. */
  understood?: string[];
}

/** What is shown as text, not as a table: JSON. */
export interface TextPage {
  n?: number;
  of: string;
  table: string;
  sort?: Sort | null;
  filters?: Filter[];
  text: string;
  above?: Block[];
}

export type Page = TablePage | TextPage;

/** A table of a saved page: all its rows, as text. */
export interface SavedTable {
  text?: string;
  columns: Column[];
  rows: (string | null)[][];
  texts?: Record<string, (string | null)[]>;
  bars?: Record<string, (number | null)[]>;
  /** The columns to show at first; all, if it is missing. */
  first?: number[];
  /** The node of each row. */
  nodes?: (string | null)[];
  /** The number of rows of the table, if some are not in the page. */
  total?: number;
  above?: Block[];
  none?: string;
  lacks?: string;
}

export type Want = "cell" | "row" | "csv";

/** A message for what no page has: a whole cell, a row as JSON, rows as CSV. `row` is numbered in the order shown. */
export interface GridMessage {
  grid: string;
  n: number;
  want: Want;
  of: string;
  table: string;
  sort?: Sort | null;
  filters?: Filter[];
  row: number;
  column?: number;
}

/** Its answer. Of CSV it is a part: `next` is the row to go on with, `most` the characters a browser takes. */
export interface GridAnswer {
  grid: string;
  n: number;
  text: string;
  error?: string;
  next?: number | null;
  total?: number;
  most?: number;
}

// Text from Python (core/_blocks.py) -----------------------------------------------------------------------------------

export type Part =
  | string
  | ["go", text: string, selection: Partial<Selection>]
  | ["set", text: string, traits: object]
  | ["bars", [kind: string, share: number][]]
  | ["sign", sign: string, style: string]
  | [kind: string, text: string, tip?: string];

export interface TableLook {
  kind?: string;
  label?: string;
  caption?: string;
  columns?: string[];
}

// deno-lint-ignore no-explicit-any
export type Block = [kind: string, ...content: any[]];

// The timeline ---------------------------------------------------------------------------------------------------------

export type Measure = "rows" | "files" | "bytes";

export interface Snapshot {
  id: string;
  time: string;
  ms: number;
  operation: string;
  refs: string[];
  /** How many of the refs, from the first on, are branches. */
  branches: number;
  /** 0 for the main branch. */
  lane: number;
  /** Its index, or -1. */
  parent: number;
  /** Whether a ref reaches it. */
  reached: boolean;
  rows: [added: number, removed: number];
  files: [added: number, removed: number];
  bytes: [added: number, removed: number];
  /** What the summary states, in all: rows, data files, delete files, bytes; -1 for what it does not. */
  totals: [rows: number, dataFiles: number, deleteFiles: number, bytes: number];
  /** An index into `writers`. */
  by: number;
  /** A description. */
  words: string;
}

// The files of a snapshot ----------------------------------------------------------------------------------------------

export type FileColor = "size" | "age" | "deletes";

/** Empty before the tab is shown. Of strings, each character is of one cell. */
export interface FileCells {
  of: string;
  /** A group of data files by their deletes; empty for all files. */
  filter: string;
  filters: string[];
  /** Shown where there are no files. */
  none?: string;
  parent: string;
  title: string;
  legend: Record<FileColor, string[]>;
  groups: [label: string, note: string, cells: number][];
  names: string[];
  kinds: string;
  changes: string;
  shades: Record<FileColor, string>;
  files: number[];
  size: number[];
  rows: number[];
  /** Per mille; -1 if some rows are, but not how many. */
  deleted: number[];
  age: number[];
  /** -1 for files in the root itself. */
  manifest: number[];
  row: number[];
}

// Problems and deletes -------------------------------------------------------------------------------------------------

export type Severity = "error" | "warning" | "info";

export interface ProblemItem {
  id: string;
  severity: Severity;
  text: string;
  evidence: string;
  where: string;
  since: string;
  actions: { title: string; selection: Partial<Selection> }[];
}

export interface ProblemGroup {
  code: string;
  severity: Severity;
  title: string;
  advice: string;
  items: ProblemItem[];
  /** About those that are not listed. */
  more: string;
  count: number;
}

export interface Problems {
  counts?: Partial<Record<Severity, number>>;
  sums?: Partial<Record<Severity, string>>;
  groups?: ProblemGroup[];
  covered?: string;
  left?: string;
  nothing?: string;
}

/** How a finding affects readers: they fail, return wrong rows, are slow, or are not affected. */
export type Effect = "fail" | "wrong" | "slow" | "untidy";

/** A finding that another one causes. */
export interface FollowingFinding {
  code: string;
  text: string;
  where: string;
  /** What to select; null if the tree has no node for it. */
  node: Partial<Selection> | null;
}

export interface Finding extends FollowingFinding {
  id: string;
  severity: Effect;
  title: string;
  count: number;
  lines: [label: string, text: string][];
  since: Partial<Selection> | null;
  /** The first and the last of the affected snapshots. */
  affected?: [words: string, selection: Partial<Selection>][];
  /** The first places, if there are several. */
  places: [where: string, node: Partial<Selection> | null][];
  follows: FollowingFinding[];
  /** How many findings follow, as text. */
  chain: string;
  /** About those that are not listed. */
  more: string;
}

export interface DoctorReport {
  id?: string;
  level?: string;
  snapshots?: string;
  scope?: string;
  /** The number of snapshots that were not checked. */
  left_out?: number;
  counts?: Record<Effect, number>;
  sums?: Record<Effect, string>;
  findings?: Finding[];
  more?: string;
  notes?: string[];
}

export interface DoctorDraft {
  tab?: string;
  level?: string;
  snapshots?: string;
}

export interface RepairPlan {
  /** The id of the report whose findings it repairs. */
  of?: string;
  headline?: string;
  blocks?: Block[];
  python?: string;
  sql?: string;
  before?: string;
  after?: string;
  note?: string;
}

export interface Vector {
  node: string;
  path: string;
  kind: string;
  title: string;
  headline: string;
  of: string;
  cardinality: number;
  notes: string[];
  /** Data files: location, number of positions, the location as shown. */
  paths: [path: string, positions: number, name: string][];
  facts: Block[];
  /** The label of the button that reads the data file's footer. */
  unread: string;
  label: string;
  legend: string;
  /** The first position of each row group. */
  borders: number[];
  /** Deleted positions per cell; a cell has `width` positions of `size`. */
  picture: { cells: number[]; width: number; size: number };
}

// The scan lab ---------------------------------------------------------------------------------------------------------

export interface ScanAnswer {
  /** The number of the plan, as text; none while there is none. */
  of?: string;
  filter?: string;
  snapshot?: string;
  error?: string;
  headline?: string;
  took?: string;
  python?: string;
  blocks?: Block[];
}

/** Files by their range of a column, as columns: one cell per file, or per row and equal range of many files. */
export interface RangeCells {
  rows: number;
  row: number[];
  /** The first stop that is not below the range. */
  first: number[];
  /** The number of stops that are not above it. */
  last: number[];
  /** The plan's verdict. */
  state: number[];
  /** 1 where the filter's other conditions leave the files. */
  open: number[];
  count: number[];
  size: number[];
}

/** The range map of a plan (scan_lab/_ranges.py). */
export interface RangeAnswer {
  of: string;
  columns: string[];
  column: string;
  rest: string;
  positions: number[];
  labels: string[];
  lows: string[];
  highs: string[];
  lower: number | null;
  upper: number | null;
  cells: RangeCells;
  /** For counting, where the ranges of `cells` are rounded. */
  exact?: RangeCells;
  names: [row: number, name: string][];
  /** Files without a range: the files by verdict, and the files and bytes that the other conditions leave. */
  strips: [name: string, counts: number[], files: number, bytes: number][];
  classes: string[];
  files: number;
  bytes: number;
  even: boolean;
  notes: string[];
  nodes?: string[];
  locations?: string[];
  missed?: string;
}

export interface ScanHint {
  n?: number;
  text?: string;
  at?: number;
  /** What can come next: as shown, a note, and the text to insert. */
  choices?: [text: string, note: string, inserted: string][];
  error?: string;
  /** Whether the filter is only too short. */
  unfinished?: boolean;
  /** The part of the text that a choice replaces. */
  start?: number;
  end?: number;
}

export interface ScanExamples {
  names?: string[];
  columns?: [name: string, type: string][];
  filters?: string[];
  blocks?: Block[];
}

// Rows -----------------------------------------------------------------------------------------------------------------

export interface RowsStory {
  of?: string;
  row?: number;
  blocks?: Block[];
}

export interface RowsAnswer {
  /** The number of the result, as text; none while there is none. */
  of?: string;
  filter?: string;
  history?: boolean;
  snapshot?: string;
  error?: string;
  headline?: string;
  /** How many rows match. */
  note?: string;
  python?: string;
  blocks?: Block[];
  /** The label of a button that reads the first rows. */
  more?: string;
}

// The commit lab -------------------------------------------------------------------------------------------------------

/** null is that of a number which is optional. */
export type FieldValue = string | number | boolean | null;

/** A field of the form, as `iceexplore.widgets.commit_lab._form.Field` describes it. */
export interface FormField {
  /** The operation that it belongs to, "layout", or "" for the form itself. */
  of: string;
  name: string;
  label: string;
  default: FieldValue;
  help?: string;
  /** The rest of the help, unfolded by a click. */
  more?: string;
  wide?: boolean;
  choices?: [value: FieldValue, text: string][] | null;
  /** Attributes of the input. */
  input?: { type?: string; [name: string]: unknown };
  /** Show it only if another field has one of these values. */
  when?: [name: string, values: FieldValue[]] | null;
}

export interface CommitForm {
  /** Why there is no form. */
  needs?: string;
  choose?: FormField[];
  layout?: FormField[];
  operations?: { name: string; title: string; help: string; fields: FormField[] }[];
}

/** What is chosen and not applied yet, by field; of operations and the layout by their name. */
export interface CommitDraft {
  tab?: string;
  before?: string;
  after?: string;
  // deno-lint-ignore no-explicit-any
  [name: string]: any;
}

export interface CommitLine {
  lines?: string[];
  current?: number;
  steps?: { id: string; title: string }[];
  at?: number;
  ends?: number[];
  code?: string;
}

/** An SVG document, the same as text, and its width in px. */
export type Figure = [svg: string, text: string, width: number];

/** The item of the trees whose tables are shown; without a node, the root of the current snapshot. */
export interface CommitItem {
  side?: "before" | "after";
  node?: string;
  table?: string;
}

export interface CommitReport {
  id?: string;
  /** null if there is nothing to draw. */
  figure?: Figure | null;
  headline?: Part[];
  title?: string;
  text?: string[];
  checked?: string;
  compared?: string;
  before?: string;
  after?: string;
  costs?: Block[];
}

// Saved pages ----------------------------------------------------------------------------------------------------------

/** The content of a saved page, as `iceexplore.widgets.saved_page._content.collect` makes it. */
export interface SavedPage {
  traits: Traits;
  /** By snapshot: traits of its tree. */
  trees: Record<string, Pick<Traits, "nodes" | "roots" | "expanded" | "compared">>;
  details: Record<string, Detail>;
  /** By node and table. */
  tables: Record<string, Record<string, SavedTable>>;
  /** By snapshot: its files as cells. */
  files: Record<string, FileCells>;
}

// Elements -------------------------------------------------------------------------------------------------------------

type TagOf<K extends string> = K extends `${infer Tag}.${string}` ? Tag : K;

/** The element that `el(kind)` returns: `"input.wide"` gives an HTMLInputElement. */
export type ElementOf<K extends string> = TagOf<K> extends keyof HTMLElementTagNameMap ? HTMLElementTagNameMap[TagOf<K>]
  : HTMLElement;

/** The element that `svg(kind)` returns. */
export type SvgOf<K extends string> = TagOf<K> extends keyof SVGElementTagNameMap ? SVGElementTagNameMap[TagOf<K>]
  : SVGElement;

/** What an element may contain; null, undefined, false and "" are left out. */
export type Child = Node | string | number | boolean | null | undefined | Child[];

/** Properties of an element: attributes, `aria…` properties, `on…` listeners, `class` and `style`. */
export interface Properties {
  class?: string | false | null;
  style?: Record<string, string | number>;
  onclick?: ((event: MouseEvent) => unknown) | null;
  onmousedown?: (event: MouseEvent) => unknown;
  onchange?: ((event: Event) => unknown) | null;
  oninput?: (event: Event) => unknown;
  onfocus?: (event: FocusEvent) => unknown;
  onkeydown?: (event: KeyboardEvent) => unknown;
  onsubmit?: (event: SubmitEvent) => unknown;
  ontoggle?: (event: Event) => unknown;
  constructor?: unknown;
  [name: string]: unknown;
}

/** Safari's events of two fingers on a trackpad. */
export interface GestureEvent extends UIEvent {
  scale: number;
  clientX: number;
  clientY: number;
}

/** Listeners by the name of their event. */
export type Listeners =
  & { [E in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[E]) => unknown }
  & { gesturestart?: (event: GestureEvent) => unknown; gesturechange?: (event: GestureEvent) => unknown };

// Canvases -------------------------------------------------------------------------------------------------------------

/** The colours that a canvas paints with, from the style sheet. */
export interface Colours {
  paper: string;
  panel: string;
  hover: string;
  ink: string;
  muted: string;
  line: string;
  accent: string;
  chosen: string;
  font: string;
  dark: boolean;
  /** Whether the system forces its colours, so that only icons distinguish kinds. */
  plain: boolean;
  /** The colour of a kind of node, a mark or an operation. */
  tint(name: string): string;
  /** The colour that cards of a kind of node are filled with. */
  fill(kind: string): string;
}

/** A picture as SVG, without the element around it, and its size in px. */
export interface SlidePicture {
  svg: string;
  width: number;
  height: number;
}

/** An item of a legend: its text, and the name of the style of its sign, if it has one. */
export type LegendItem = [text: string, look?: string];

/** How to draw a path. */
export interface Look {
  fill?: string;
  stroke?: string;
  width?: number;
  dash?: number[];
  alpha?: number;
}

/** The part of a picture that is in view: an offset in px, a scale, and the size of the canvas in px. */
export interface Viewport {
  x: number;
  y: number;
  scale: number;
  width: number;
  height: number;
}

// The explorer of views ------------------------------------------------------------------------------------------------

/** The traits of the explorer of a view. */
export interface ViewTraits {
  entries: { id: string; time: string; mark: string; words: string }[];
  left_out: number;
  /** Indexes of entries; -1 for none. */
  entry: number;
  against: number;
  parts: [key: string, title: string][];
  tab: string;
  dialect: string;
  dialects: string[];
  content: { tab?: string; key?: string; blocks?: ViewBlock[] };
}

/** The model as the explorer of views gets it. */
export type ViewModel = ViewTraits & Pick<ModelMethods, "follow"> & {
  set<K extends keyof ViewTraits>(name: K, value: ViewTraits[K]): void;
  save<K extends keyof ViewTraits>(name: K, value: ViewTraits[K]): void;
};

/** See `iceexplore.widgets.view_explorer._blocks`. */
export type ViewBlock =
  | [kind: "sql", pieces: (string | [kind: string, text: string])[], text: string]
  | [kind: "diff", titles: string[], rows: [sign: string, before: string | null, after: string | null][]]
  | [kind: "picture", light: string, dark: string, alt: string]
  | [kind: "fold", parts: string[], blocks: ViewBlock[]]
  | [kind: "h" | "p" | "list" | "table" | "code", ...Block];
