#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>

#include "runtime/base/error.hpp"
#include "runtime/base/number_text.hpp"
#include "runtime/data/dates.hpp"
#include "runtime/data/foreign.hpp"
#include "runtime/data/key_names.hpp"
#include "runtime/data/table.hpp"

namespace cudp {
namespace {

std::string line_place(std::uint64_t line) { return "line " + std::to_string(line); }

/// Throws InputError if the column name `name` in a header is not UTF-8. lines: the file, for
/// messages.
void check_encoding(const LineReader& lines, std::string_view name) {
  const std::string fault = encoding_fault(name);
  if (!fault.empty()) bad_input(lines.file(), line_place(lines.number()), "UTF-8 text", fault);
}

/// Checks the first bytes of a file whose first line is a header, and throws InputError if it is
/// not a text table (e.g. a spreadsheet). The error depends only on the header, which is public.
/// Requires that no line has been read. lines: the file.
void check_header_bytes(LineReader& lines) {
  auto head = lines.head();
  const auto end = std::find(head.begin(), head.end(), '\n');
  head = head.first(static_cast<std::size_t>(end - head.begin()));
  const std::string what = describe_foreign(head);
  if (!what.empty()) bad_input(lines.file(), "", "a table of text", what);
}

}  // namespace

void TableFaults::add(std::uint64_t line, std::string_view column, std::string_view expected,
                      std::string_view found) {
  if (full()) return;
  std::string place = line_place(line);
  if (!column.empty()) place.append(", column ").append(shown(column));
  add_at(std::move(place), expected, found);
}

void TableFaults::add_at(std::string place, std::string_view expected, std::string_view found) {
  if (full()) return;
  lines_.push_back(place.append(": expected ").append(expected).append(", found ").append(found));
}

void TableFaults::raise() const {
  if (!seems_.empty()) bad_input(file_, "", "a table of text", seems_);
  if (lines_.size() == 1) throw InputError(file_ + ", " + lines_.front());
  std::string text = file_ + ": " + std::to_string(lines_.size()) + " errors" +
                     (full() ? ", and perhaps more after them" : "");
  bool advised = false;
  for (const std::string& line : lines_) {
    const bool advice = line.ends_with(kIconvAdvice);
    text.append("\n  ").append(line, 0,
                               line.size() - (advice && advised ? kIconvAdvice.size() : 0));
    advised = advised || advice;
  }
  throw InputError(text);
}

TableRows::TableRows(ByteReader& reader, const TableSchema& schema, TableFaults& faults,
                     Malformed malformed, LabelColumn label, UnitColumn unit,
                     UnlistedColumns others)
    : schema_(schema),
      faults_(faults),
      malformed_(malformed),
      label_(label),
      unit_(unit),
      others_(others),
      lines_(reader, malformed == Malformed::missing ? LongLines::cut : LongLines::refuse,
             ByteOrderMarks::of_rows),
      splitter_(schema.delimiter, schema.quotes),
      width_(schema.columns.size()),
      cells_(schema.columns.size()) {
  for (std::size_t i = 0; i < schema.columns.size(); ++i)
    if (is_predicted(schema.columns[i])) label_at_ = i;
  // The check of the first bytes may refuse a text that only looks like another kind of file.
  // Without a header the first bytes are a row, and a row that fits the schema must not be refused.
  // So only the first bytes of a header are checked.
  if (schema.header) check_header_bytes(lines_);
  faults_.explain(describe_foreign(lines_.head()));
  for (std::size_t i = 0; i < cells_.size(); ++i) order_.push_back(i);
  if (schema.header) read_header();
}

/// Reads the header row, and finds in it the index of each of the schema's columns.
void TableRows::read_header() {
  std::string_view line;
  if (!splitter_.next_row(lines_, schema_.skip_prefix, line))
    bad_input(lines_.file(), "", "a header row", "none");
  const auto header = splitter_.split(line);
  const std::string place = line_place(lines_.number());
  // If the user's table has no header row although its schema states one, this first row belongs to
  // a unit of privacy. No message may quote it then.
  const bool quotes = !schema_.unit;
  const auto refuse = [&](const std::string& expected, const std::string& found) {
    bad_input(lines_.file(), place, expected, found);
  };
  const auto near = [&](const std::string& name, const std::vector<std::string>& names) {
    return quotes ? near_column(name, names) : std::string();
  };
  if (!splitter_.fault().expected.empty())
    refuse(std::string(splitter_.fault().expected),
           quotes ? splitter_.fault().found : "something else");
  for (const std::string_view name : header)
    if (quotes)
      check_encoding(lines_, name);
    else if (!encoding_fault(name).empty())
      refuse("UTF-8 text", "something else" + std::string(kIconvAdvice));
  if (header.size() == 1 && schema_.columns.size() > 1)
    if (const std::string other = other_delimiter(line, schema_.delimiter); !other.empty())
      refuse(std::to_string(schema_.columns.size()) + " names in the header row", "one" + other);
  width_ = header.size();
  std::size_t known = 0;
  for (std::size_t i = 0; i < schema_.columns.size(); ++i) {
    const auto found = std::find(header.begin(), header.end(), schema_.columns[i].name);
    order_[i] = static_cast<std::size_t>(found - header.begin());
    if (found != header.end() && std::find(found + 1, header.end(), *found) != header.end())
      refuse("each column once", shown(*found) + " twice");
    if (found != header.end())
      ++known;
    else if (!may_lack(i))
      refuse("a column " + shown(schema_.columns[i].name),
             "none of that name in the header row" +
                 near(schema_.columns[i].name, {header.begin(), header.end()}));
  }
  for (const std::string_view name : header) {
    if (std::ranges::any_of(schema_.columns, [&](const Column& c) { return c.name == name; }))
      continue;
    if (others_ == UnlistedColumns::as_stated)
      refuse("only columns the schema names",
             quotes ? shown(name) + near_column(name, names_of(schema_.columns))
                    : "one of another name");
    dropped_.emplace_back(name);
  }
  if (width_ != known + dropped_.size())
    refuse("each column once", std::to_string(width_) + " names");
}

/// Returns whether a file with a header may lack the schema's column at this index.
bool TableRows::may_lack(std::size_t column) const {
  if (column == label_at_) return label_ == LabelColumn::optional;
  if (unit_ == UnitColumn::optional && column == unit_column(schema_)) return true;
  const auto& kind = schema_.columns[column].kind;
  return others_ == UnlistedColumns::any &&
         (std::holds_alternative<Ignored>(kind) || std::holds_alternative<Id>(kind));
}

/// Returns the number of cells that a row must have. If the first row of a file without a header
/// has one cell less than the schema has columns, the file has no labels, and its rows must all
/// have that number. found: number of cells in this row.
std::size_t TableRows::width(std::size_t found) {
  const std::size_t all = cells_.size();
  if (first_ && !schema_.header && label_ == LabelColumn::optional && found + 1 == all) {
    order_[label_at_] = all;
    for (std::size_t i = label_at_ + 1; i < all; ++i) --order_[i];
    width_ = all - 1;
  }
  first_ = false;
  return width_;
}

bool TableRows::next(TableRow& row) {
  std::string_view line;
  while (splitter_.next_row(lines_, schema_.skip_prefix, line)) {
    const auto found = splitter_.split(line);
    const SplitFault& fault = splitter_.fault();
    const std::size_t cells = width(found.size());
    row = {lines_.number(), line, cells_, false};
    if (fault.expected.empty() && !lines_.was_cut() && found.size() == cells) {
      for (std::size_t i = 0; i < cells_.size(); ++i)
        cells_[i] = order_[i] < found.size() ? found[order_[i]] : std::string_view();
      return true;
    }
    if (malformed_ == Malformed::missing) {
      std::fill(cells_.begin(), cells_.end(), std::string_view());
      row.malformed = true;
      return true;
    }
    // Text after a quote may belong to the cell of a unit of privacy, which no message may quote.
    if (!fault.expected.empty())
      faults_.add(row.line, "", fault.expected, schema_.unit ? "something else" : fault.found);
    else
      faults_.add(row.line, "", std::to_string(cells) + " cells",
                  std::to_string(found.size()) +
                      (found.size() == 1 ? other_delimiter(line, schema_.delimiter) : ""));
    if (faults_.full()) return false;
  }
  return false;
}

Compression compression_of(const TableSchema& schema) {
  return schema.header ? Compression::by_content : Compression::by_name;
}

std::string column_list(std::span<const std::string> names) {
  constexpr std::size_t kShown = 20;
  std::string list;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i)
    list.append(i > 0 ? ", " : "").append(shown(names[i]));
  if (names.size() > kShown) list += " and " + std::to_string(names.size() - kShown) + " more";
  return list;
}

void for_each_row(ByteReader& reader, const TableSchema& schema,
                  const std::function<void(const TableRow&)>& use) {
  TableFaults faults(reader.name());
  TableRows rows(reader, schema, faults);
  TableRow row;
  bool any = false;
  while (rows.next(row)) {
    use(row);
    any = true;
  }
  if (faults.any()) faults.raise();
  if (!any) bad_input(reader.name(), "", "at least one row", "none");
}

std::uint64_t count_rows(ByteReader& reader, const TableSchema& schema) {
  LineReader lines(reader, LongLines::cut, ByteOrderMarks::of_rows);
  const CellSplitter splitter(schema.delimiter, schema.quotes);
  std::string_view line;
  if (schema.header) splitter.next_row(lines, schema.skip_prefix, line);
  std::uint64_t rows = 0;
  while (splitter.next_row(lines, schema.skip_prefix, line)) ++rows;
  return rows;
}

TableSchema schema_from_header(ByteReader& reader, char delimiter) {
  LineReader lines(reader, LongLines::refuse, ByteOrderMarks::of_rows);
  CellSplitter splitter(delimiter);
  check_header_bytes(lines);
  std::string_view line;
  if (!splitter.next_row(lines, "", line)) bad_input(reader.name(), "", "a header row", "none");
  TableSchema schema;
  schema.delimiter = delimiter;
  std::set<std::string> names;
  std::size_t label = 0;
  bool named = false;
  const auto header = splitter.split(line);
  if (const SplitFault& fault = splitter.fault(); !fault.expected.empty())
    bad_input(reader.name(), line_place(lines.number()), fault.expected, fault.found);
  for (const std::string_view cell : header) {
    check_encoding(lines, cell);
    std::string name(cell);
    if (name.empty() || !names.insert(name).second)
      bad_input(reader.name(), line_place(lines.number()), "a different name for every column",
                name.empty() ? "none for column " + std::to_string(schema.columns.size() + 1)
                             : shown(name) + " twice");
    std::string lower = name;
    for (char& c : lower)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (!named) label = schema.columns.size();
    named = named || lower == "label" || lower == "class" || lower == "target";
    schema.columns.push_back({std::move(name), Unstated{}});
  }
  schema.columns[label].kind = Label{};
  if (schema.columns.size() < 2)
    bad_input(reader.name(), line_place(lines.number()), "at least two columns",
              "one" + other_delimiter(line, delimiter));
  return schema;
}

namespace {

/// Parses whole numbers and fractions of up to 15 digits, such as 40 or -12.5; nullopt for every
/// other text. The result is that of std::from_chars: the digits and the power of ten are exact in
/// double, so only the division rounds.
std::optional<double> parse_short_number(std::string_view text) {
  constexpr std::array<double, 16> kPowers = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                              1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  if (text.empty() || text.size() > 16) return std::nullopt;
  std::int64_t digits = 0;
  std::size_t point = text.size();
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digit = static_cast<unsigned>(text[i]) - '0';
    if (digit <= 9)
      digits = 10 * digits + digit;
    else if (text[i] == '.' && point == text.size() && i > 0 && i + 1 < text.size())
      point = i;
    else
      return std::nullopt;
  }
  if (point == text.size() && text.size() > 15) return std::nullopt;
  auto value = static_cast<double>(digits);
  if (point != text.size()) value /= kPowers[text.size() - point - 1];
  return negative ? -value : value;
}

}  // namespace

std::optional<double> parse_number(std::string_view text, char decimal) {
  constexpr std::size_t kLongest = 64;
  std::array<char, kLongest> points;
  if (decimal != '.') {
    if (text.size() > kLongest || text.find('.') != std::string_view::npos) return std::nullopt;
    std::replace_copy(text.begin(), text.end(), points.begin(), decimal, '.');
    text = {points.data(), text.size()};
  }
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  if (const auto short_number = parse_short_number(text)) return short_number;
  const std::optional<double> value = read_number<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<double> parse_cell(const TableSchema& schema, const Numeric& numeric,
                                 std::string_view cell) {
  return numeric.date_format.empty() ? parse_number(cell, schema.decimal)
                                     : parse_date(cell, numeric.date_format);
}

std::string_view class_text(const Label& label, std::string_view cell) {
  if (cell.ends_with(label.strip_suffix)) cell.remove_suffix(label.strip_suffix.size());
  return cell;
}

WordCounter count_words(ByteReader& reader, const TableSchema& schema) {
  WordCounter counter;
  for_each_row(reader, schema, [&](const TableRow& row) {
    for (std::size_t i = 0; i < row.cells.size(); ++i)
      if (std::holds_alternative<Text>(schema.columns[i].kind) &&
          !is_missing(schema, schema.columns[i], row.cells[i]))
        counter.add(row.cells[i]);
  });
  return counter;
}

}  // namespace cudp
