// SPDX-License-Identifier: Apache-2.0
// What a report says, before anybody decides how it looks: sections of text, tables and figures, with numbers as
// numbers. Whoever makes one formats nothing, rounds nothing and escapes nothing; report/render/ does that, once a
// format. Any text in it may come from outside (names of files, models and levels, messages): renderers take none as
// markup.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace strata::document {

// How people read a number. JSON and CSV hold it as it is, whatever its format.
enum class NumberFormat {
  digits,   // 0.01235, 1.234, 123.4: four significant digits
  count,    // 1,128
  percent,  // a share of one: 0.9345 reads "93.45%"
  seconds,  // 0.0369 reads "36.9 ms"
  bytes,    // 310e6 reads "310 MB"
  ratio,    // 1.42; never more than two decimals
};

enum class Align { left, right };

// One that is not finite is shown as absent. An interval (or a range) has both ends or none.
struct Number {
  double value = std::numeric_limits<double>::quiet_NaN();
  NumberFormat format = NumberFormat::digits;
  std::optional<double> low, high;
  std::string mark;  // what stands behind it for people, as "*" where a note says more
};

// No value, and why, as "out of memory"; the reason may be empty.
struct Absent {
  std::string reason;
};

// How a text stands out where there are colours; it says the same without.
enum class Tone { plain, good, bad, faint, strong };

struct Word {
  std::string text;
  Tone tone = Tone::plain;
};

using Cell = std::variant<std::string, Number, Absent, Word>;

// A number, or why there is none.
inline Cell number_cell(std::optional<double> value, NumberFormat format, std::string why_not = {}) {
  if (!value) return Absent{std::move(why_not)};
  return Number{.value = *value, .format = format};
}

struct Column {
  std::string id;     // for JSON and CSV: "test_accuracy"
  std::string title;  // for people: "accuracy"
  std::string unit;   // behind the title, where the numbers do not say it: "samples/s"
  Align align = Align::right;
  bool has_bars = false;  // a page draws each number as a bar from zero, too
};

// The first column names the row and stays in sight where a table scrolls. A row that is too short ends in absent
// cells.
struct Table {
  std::string id, title;
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
  std::string note;         // a sentence below
  std::vector<int> depths;  // of an outline: how deep each row hangs below one before it; as long as rows, or empty
};

struct Axis {
  std::string title, unit;  // the unit is left out where the format brings one
  bool logarithmic = false;
  NumberFormat format = NumberFormat::digits;
  std::vector<std::string> categories;  // if any: values are places in it, from 0
  bool from_zero = false;
};

// x and y are equally long; a value that is not finite is a gap. low and high are a band around y: as long as it, or
// empty.
struct Line {
  std::string name;
  std::vector<double> x, y;
  std::vector<double> low, high;
  std::vector<std::string> labels;  // what points are called, as "batch 8": as long as x, or empty
  std::string group;    // lines of a group, as of a level, have one colour in all figures of a document; "": the name
  bool dashed = false;  // another kind of line of the group, as "validation"
  bool marks_only = false;    // points that no line joins
  bool shows_labels = false;  // beside the points, too, where there is room
};

// From one place on the x axis to another.
struct Stretch {
  double from, to;
};

struct Panel {
  std::string title;  // may be empty where a figure has one panel
  Axis x, y;
  std::vector<Line> lines;
  std::vector<Stretch> shaded;  // what was wrong there, the figure's note says
  std::vector<double> borders;  // on the x axis, each a dotted line
};

// What an item shows, where it is one of several that stand for each other: {"mode", "infer"}. Neighbours in a section
// whose choices have the same titles are alternatives: a page shows one at a time, other formats all of them.
struct Choice {
  std::string title, option;
};

// Panels share a legend: lines of the same name are shown and hidden together.
struct Figure {
  std::string id, title;
  std::vector<Panel> panels;
  std::string note;
  std::vector<Choice> choices;
  std::optional<Table> table;  // says the same, in place of its points, where there are no pictures
};

// One value for each row of Bars; one that is not finite has no length.
struct BarPart {
  std::string name;
  std::vector<double> values;
};

// Horizontal bars from zero, a row each, of parts that follow each other. `marks` are points beside them on the scale.
struct Bars {
  std::string id, title;
  std::vector<std::string> rows;
  std::vector<BarPart> parts, marks;
  Axis scale;
  std::string note;
  std::optional<Table> table;  // says more, in place of the parts, where there are no pictures
};

// values[row][column]; one that is not finite is an empty field. A scale with categories gives each a colour, that of
// the lines of this name.
struct HeatMap {
  std::string id, title;
  std::string row_title, column_title;
  std::vector<std::string> rows, columns;
  std::vector<std::vector<double>> values;
  Axis scale;                    // what the colours mean
  std::optional<double> middle;  // two colours that part here, as at a ratio of 1; without: one, from light to dark
  std::vector<std::vector<std::string>> labels;  // what fields read in place of their numbers; empty: these
  std::string note;
  std::vector<Choice> choices;
};

// Without a finite number: an empty field, and `outcome` says why. Else `outcome` is what else is known, as "faster
// than eager", and `label` is what the field reads in place of the number (empty: the number without its interval).
struct SurfaceField {
  Number number;
  std::string outcome, label;
};

// fields[row][column]; a layer's colour in space is that of the lines of its name.
struct Layer {
  std::string name;
  std::vector<std::vector<SurfaceField>> fields;
};

// One quantity over two axes, a layer a level: as maps side by side, or as surfaces in space.
struct Surface {
  std::string id, title;
  std::string row_title, column_title;
  std::vector<std::string> rows, columns;
  std::vector<Layer> layers;
  Axis scale;
  std::optional<double> middle;  // as a heat map's
  std::string note;
  std::vector<Choice> choices;
  bool is_detail = false;  // left out where a report is read from its beginning to its end: text and Markdown
};

struct Text {
  enum class Kind { normal, warning, command, log };
  std::string paragraph;  // a command is never broken, so that it can be copied; a log keeps its lines
  Kind kind = Kind::normal;
};

struct Fact {
  std::string name, value;
  bool is_command = false;  // the value is one
};

struct Facts {
  std::string title;  // may be empty
  std::vector<Fact> facts;
};

// Items that a page folds away below the title; left out where a report is read from its beginning to its end.
struct Details;

using Item = std::variant<Text, Table, Figure, HeatMap, Surface, Bars, Facts, Details>;

struct Details {
  std::string title;
  std::vector<Item> items;
};

struct Section {
  std::string id, title;  // a section without a title goes on with what stands before it
  std::vector<Item> items;
  bool is_detail = false;  // left out where a report is read from its beginning to its end
};

// Ids are unique in a document or part and hold a-z, 0-9, "_" and "-"; what else they hold is replaced where a format
// needs it.
struct Document {
  std::string title;     // of the page: "strata train: resnet18"
  std::string subtitle;  // what ran, in one line
  std::string summary;   // the answer in one or two sentences; comes first
  std::vector<Section> sections;
  std::vector<Fact> facts;      // machine, environment, command; come last
  std::string id;               // of a part
  std::vector<Document> parts;  // each with a title, an answer and sections of its own; they come behind the sections
  std::string footnote;         // how a page is read
  std::vector<Fact> marks;      // in front of every row of a CSV: {"run_state", "interrupted"}
};

}  // namespace strata::document
