// The types that several modules share: the model, the traits that Python and the browser exchange, and the messages.
// The Python classes of the traits document their purpose; this file gives their shapes, as the browser reads them.
// It is not part of the scripts that are sent to the browser.

// The model ------------------------------------------------------------------------------------------------------------

/** The part of anywidget's model that the widgets use: https://anywidget.dev/en/afm/ */
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

/** The argument that anywidget passes to `render`. */
export interface RenderContext {
  model: AnyModel;
  el: HTMLElement;
}

/** The traits with which the browser asks Python for something. Each request has a number, `n`. */
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

/** The methods that `createModel` of `shell.js` adds to the traits. */
export interface ModelMethods {
  /** Set a trait in the browser alone. */
  set<K extends keyof Traits>(name: K, value: Traits[K]): void;
  /** Set a trait and send it to Python. */
  save<K extends keyof Traits>(name: K, value: Traits[K]): void;
  /** Number a request, store it in a trait and send it. Returns the number, which the answer repeats. */
  request(name: RequestName, request: object): number;
  /**
   * Like `request`, for requests of which none may be skipped. While Python is busy, notebooks merge the changes of a
   * trait into one, so each request also contains the ones before it, as `earlier`.
   */
  requestEach(name: RequestName, request: object): number;
  /** Send a message to Python. */
  send(message: unknown): void;
  /** Call `run` at each event of this name of anywidget's model, until the widget is removed. */
  // deno-lint-ignore no-explicit-any
  on(event: string, run: (message: any) => void): void;
  /** Call `run` when one of these traits changes, until the widget is removed. */
  onChange(names: string | string[], run: () => void): void;
  /** Call `run` now, and when one of these traits changes. */
  follow(names: string | string[], run: () => void): void;
  /** Call `run` when the widget is removed. */
  onEnd(run: () => void): void;
  /** Show a message for a few seconds, for example that a path was copied. */
  say(text: string): void;
  /** Return whether the widget's height is set, and small. */
  isShort(): boolean;
  /** Call `run` when the result of `isShort` changes. */
  onRoom(run: () => void): void;
}

/** The traits whose values the browser keeps for its session. */
export type RoomName = "text_size" | "head_collapsed" | "collapsed" | "details_hidden";

/** The model as views get it: traits are its properties, beside the methods above. */
export type Model = Traits & ModelMethods;

/**
 * The function that a module exports for a widget or a tab. It returns the element of the view, which the shell then
 * adds to `root`, the element of the widget.
 */
export type View = (model: Model, root: HTMLElement) => HTMLElement;

// Traits ---------------------------------------------------------------------------------------------------------------

/** The traits of the explorer. Other widgets have a part of them, and a saved page those that Python wrote into it. */
export interface Traits {
  // core/
  title: string;
  badges: string[];
  styles: Styles;
  /** The caption of pictures: which snapshot is selected. */
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

/** The effect of a chosen result of the omnibox: set traits, select, or press the first button with one of these names. */
export interface OmniAction {
  // deno-lint-ignore no-explicit-any
  set?: Record<string, any>;
  select?: Partial<Selection>;
  press?: string[];
}

/** What is selected. Snapshot ids are digits; "" means that none is. `against` is the snapshot to compare with. */
export interface Selection {
  snapshot: string;
  against: string;
  node: string;
}

export interface ErrorText {
  text: string;
  advice: string;
}

/** The style of a kind of node, a mark (`mark:…`) or an operation (`operation:…`); "" is the style of all others. */
export interface Style {
  light: string;
  dark: string;
  title?: string;
  /** The heading of the column, for a kind of node. */
  layer?: string;
  /** The colours that fill the cards, for a kind of node. */
  fills?: [light: string, dark: string];
  /** A letter or sign. */
  sign?: string;
  /** SVG paths to fill and to stroke. */
  icon?: [fill: string, line: string];
  /** The corners of the shape, around a centre at (0, 0), with radius 1; absent for a circle. */
  corners?: [x: number, y: number][];
}
export type Styles = Record<string, Style>;

// Trees ----------------------------------------------------------------------------------------------------------------

export interface TreeNode {
  kind: string;
  label: string;
  /** The part of the name that distinguishes a file or manifest from its siblings; `note` is then its partition. */
  title?: string;
  note: string;
  marks: string[];
  /** The ids of the nodes that a delete applies to. */
  applies?: string[];
  tooltip?: string;
  /** Whether it can never have children. */
  leaf: boolean;
  /** null while they have not been read. */
  children: string[] | null;
  /** The reason why a scan skips it. */
  reason?: string;
  /** How dark its cell is, from 0 to 5, for a node with a size. */
  shade?: number;
  /** The cells of a node that represents many others: one for each of them, or for several together. */
  cells?: FoldedCells;
}

/** Cells as columns; the strings have one character per cell. */
export interface FoldedCells {
  names: string[];
  kinds: string;
  shades: string;
  changes: string;
  /** The part of the nodes' ids that identifies their parent, between the kind and the row. */
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

/** A visible node: its place among the rows, and the place of its card, in px at scale 1. */
export interface TreeRow {
  id: string;
  node: TreeNode;
  parent: string | null;
  /** From 1. */
  level: number;
  /** Its index among its siblings, and their number. */
  index: number;
  of: number;
  open: boolean;
  children: TreeRow[];
  /** Whether its card is in a block of several columns. */
  inBlock: boolean;
  /** Whether it is drawn as a small square, because it has many siblings. */
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

/** A field's name and value, and the exact value if signs replace control characters in the one shown. */
export type Fact = [name: string, text: string, exact?: string];

export interface Detail {
  id?: string;
  kind: string;
  kind_title: string;
  title: string;
  path?: string;
  /** The exact path, without the signs that replace control characters. */
  copy?: string;
  problems?: {
    severity: Severity;
    title: string;
    text: string;
    evidence?: string;
    advice: string;
    /** The selection that shows the problem, if it is another node's. */
    go?: Partial<Selection>;
  }[];
  /** The result of comparing the recorded numbers with counted ones. */
  counted?: string;
  facts?: Fact[];
  more?: Fact[];
  /** The help of each field. */
  help?: Record<string, Help>;
  /** The points that the V4 proposal leaves open. */
  open?: Record<string, OpenPoint>;
  tables?: { of: string; key: string; title: string }[];
}

/** A field's meaning, the section of the spec that defines it, its URL, and the keys of points that are open. */
export type Help = [meaning: string, section?: string, link?: string, open?: string[]];
/** A point that the V4 proposal leaves open: quotations from it, and how iceexplore reads and writes it. */
export type OpenPoint = [title: string, says: string[], answer: string];

// Grids ----------------------------------------------------------------------------------------------------------------

export type Operator = "contains" | "=" | "!=" | "<" | "<=" | ">" | ">=" | "null" | "not null";

/** A filter of a column, which is an index; null filters all columns. */
export interface Filter {
  column: number | null;
  op: Operator;
  value: string;
}

export type Sort = [column: number, direction: "asc" | "desc"];

/** The page that is asked for: of the table `table` of the owner `of`. */
export interface Query {
  n?: number;
  of?: string;
  table?: string;
  page?: number;
  sort?: Sort | null;
  filters?: Filter[];
  columns?: number[];
  /** A node: the page that has its row is wanted. */
  node?: string;
}

export interface Column {
  name: string;
  /** Whether its values are aligned right, as numbers are. */
  right?: boolean;
  doc?: string;
  /** Whether it is the row header, which is the first column. */
  head?: boolean;
  /** The unit of its exact values. */
  unit?: string;
}

/** A page of a table; `shown` has the indexes of the columns that `rows` contains. */
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
  /** The texts that cells show instead of exact values, by column. */
  texts?: Record<string, (string | null)[]>;
  /** Each value as a percentage of the column's largest, by column. */
  bars?: Record<string, (number | null)[]>;
  nodes: (string | null)[];
  page: number;
  pages: number;
  size: number;
  total: number;
  whole: number;
  /** The numbers of the rows in the unsorted table. */
  numbers?: number[];
  /** The help of the columns, by index. */
  help?: Record<string, Help>;
  open?: Record<string, OpenPoint>;
  /** Shown above the table. */
  above?: Block[];
  /** Shown where there are no rows. */
  none?: string;
  /** A warning that rows may be missing. */
  lacks?: string;
  /** A note that the table has only the first rows. */
  preview?: string;
  /** The reason why the requested filter is invalid. */
  refused?: string;
  /** Whether the invalid filter may become valid when more is typed. */
  unfinished?: boolean;
  /** The interpretation of each filter of one column. */
  understood?: string[];
}

/** A page that is shown as text, such as JSON, not as a table. */
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
  /** The columns to show at first; all if absent. */
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

/** A request for a whole cell, a row as JSON, or rows as CSV. `row` is counted in the displayed order. */
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

/**
 * The answer to a `GridMessage`. CSV comes in parts: `next` is the row with which the next part begins, and `most` the
 * largest number of characters that a browser takes.
 */
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
  /** The number of branches, which come first among the refs. */
  branches: number;
  /** 0 for the main branch. */
  lane: number;
  /** The index of the parent; -1 for none. */
  parent: number;
  /** Whether a ref reaches it. */
  reached: boolean;
  rows: [added: number, removed: number];
  files: [added: number, removed: number];
  bytes: [added: number, removed: number];
  /** The totals in the snapshot's summary, and the rows left after position deletes; -1 for unknown ones. */
  totals: [rows: number, dataFiles: number, deleteFiles: number, bytes: number, rowsLeft: number];
  /** An index into `writers`. */
  by: number;
  /** A description. */
  words: string;
}

// The files of a snapshot ----------------------------------------------------------------------------------------------

export type FileColor = "size" | "age" | "deletes";

/** The files as columns, one value per cell; the strings have one character per cell. Empty until the tab is shown. */
export interface FileCells {
  of: string;
  /** The chosen group of data files, by their deletes; "" for all files. */
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
  /** The deleted rows, per mille; -1 if some are deleted but their number is unknown. */
  deleted: number[];
  age: number[];
  /** -1 for files that are entries of the root itself. */
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
  /** A sentence about the problems that are not listed. */
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

/** The effect of a finding on readers: they fail, return wrong rows, are slow, or are not affected. */
export type Effect = "fail" | "wrong" | "slow" | "untidy";

/** A finding that is a consequence of another one. */
export interface FollowingFinding {
  code: string;
  text: string;
  where: string;
  /** The selection that shows it; null if the tree has no node for it. */
  node: Partial<Selection> | null;
}

export interface Finding extends FollowingFinding {
  id: string;
  severity: Effect;
  title: string;
  count: number;
  lines: [label: string, text: string][];
  since: Partial<Selection> | null;
  /** The first and the last affected snapshot. */
  affected?: [words: string, selection: Partial<Selection>][];
  /** The first places, if there are several. */
  places: [where: string, node: Partial<Selection> | null][];
  follows: FollowingFinding[];
  /** The number of findings that follow from it, as text. */
  chain: string;
  /** A sentence about the places that are not listed. */
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
  /** The id of the report whose findings the plan repairs. */
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
  /** The number of deleted positions in each cell; a cell covers `width` of the file's `size` positions. */
  picture: { cells: number[]; width: number; size: number };
}

// The scan lab ---------------------------------------------------------------------------------------------------------

export interface ScanAnswer {
  /** The number of the plan, as text; absent until there is a plan. */
  of?: string;
  filter?: string;
  snapshot?: string;
  error?: string;
  headline?: string;
  took?: string;
  python?: string;
  blocks?: Block[];
}

/** The files' ranges of a column, as columns: one cell per file, or one for all files of a row with the same range. */
export interface RangeCells {
  rows: number;
  row: number[];
  /** The first position that is not below the range. */
  first: number[];
  /** The number of positions that are not above the range. */
  last: number[];
  /** The plan's decision about the files. */
  state: number[];
  /** 1 where the filter's other conditions keep the files. */
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
  /** The exact ranges, for counting, if those of `cells` are rounded. */
  exact?: RangeCells;
  names: [row: number, name: string][];
  /** Files without a range: their number by decision, and the files and bytes that the other conditions keep. */
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
  /** The possible continuations: each as shown, with a note, and the text to insert. */
  choices?: [text: string, note: string, inserted: string][];
  error?: string;
  /** Whether the filter is valid so far but incomplete. */
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
  /** The number of the result, as text; absent until there is a result. */
  of?: string;
  filter?: string;
  history?: boolean;
  snapshot?: string;
  error?: string;
  headline?: string;
  /** The number of rows that match, as text. */
  note?: string;
  python?: string;
  blocks?: Block[];
  /** The label of a button that reads the first rows. */
  more?: string;
}

// The commit lab -------------------------------------------------------------------------------------------------------

/** The value of a field of the form; null for an optional number that is left empty. */
export type FieldValue = string | number | boolean | null;

/** A field of the form, as `iceexplore.widgets.commit_lab._form.Field` describes it. */
export interface FormField {
  /** The operation that the field belongs to, "layout", or "" for the form itself. */
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
  /** The field is shown only if another field has one of these values. */
  when?: [name: string, values: FieldValue[]] | null;
}

export interface CommitForm {
  /** The reason why there is no form. */
  needs?: string;
  choose?: FormField[];
  layout?: FormField[];
  operations?: { name: string; title: string; help: string; fields: FormField[] }[];
}

/** Values that were entered and not applied yet, by field; those of operations and the layout are grouped by name. */
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

/** An SVG document, its content as text, and its width in px. */
export type Figure = [svg: string, text: string, width: number];

/** The node of a tree whose tables are shown; without a node, the root of the current snapshot. */
export interface CommitItem {
  side?: "before" | "after";
  node?: string;
  table?: string;
}

export interface CommitReport {
  id?: string;
  /** The figure of the step; null if there is nothing to draw. */
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

/** The content of a saved page, which `iceexplore.widgets.saved_page._content.collect` returns. */
export interface SavedPage {
  traits: Traits;
  /** The traits of each snapshot's tree. */
  trees: Record<string, Pick<Traits, "nodes" | "roots" | "expanded" | "compared">>;
  details: Record<string, Detail>;
  /** The tables, by node and key. */
  tables: Record<string, Record<string, SavedTable>>;
  /** The files of each snapshot, as cells. */
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

/** The possible content of an element; null, undefined, false and "" are left out. */
export type Child = Node | string | number | boolean | null | undefined | Child[];

/** The properties of an element: attributes, `aria…` properties, `on…` listeners, `class` and `style`. */
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

/** Safari's event for a gesture with two fingers on a trackpad. */
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

/** The colours of a canvas, from the style sheet. */
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
  /** Whether the system imposes its own colours (forced-colors), so that only icons distinguish kinds. */
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

/** An item of a legend: its text, and the name of a style if it has a sign. */
export type LegendItem = [text: string, look?: string];

/** The line and the fill of a path. */
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

/** The model of the explorer of views. */
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
