#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/base/busy.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"
#include "runtime/data/bytes.hpp"
#include "runtime/data/draft_schema.hpp"
#include "runtime/data/find_schema.hpp"
#include "runtime/data/first_rows.hpp"
#include "runtime/data/folders.hpp"
#include "runtime/data/holdout.hpp"
#include "runtime/data/infer_schema.hpp"
#include "runtime/data/kept_table.hpp"
#include "runtime/data/named_datasets.hpp"
#include "runtime/data/published.hpp"
#include "runtime/data/range.hpp"
#include "runtime/data/row_encoder.hpp"
#include "runtime/data/sources.hpp"
#include "runtime/data/table.hpp"
#include "runtime/data/table_reader.hpp"
#include "runtime/data/text.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;

/// Origin of the test rows of a table.
enum class TestRows {
  none,
  file,        ///< a separate file
  among_train  ///< part of the training file, for a table that was published without a test set
};

/// The files from which the training and the test rows of a table are read, and the user's claims
/// about the files' origin.
struct TableFiles {
  fs::path train;
  fs::path test{};
  TestRows where = TestRows::none;
  Claim claim_of_train{};
  Claim claim_of_test{};
};

/// Shows on the terminal which file the program reads, and for what purpose. doing: text before the
/// file's name; "reading" gives "reading 'visits.csv'". progress: the display; may be null.
void show(Busy* progress, const char* doing, const fs::path& file) {
  if (progress != nullptr)
    progress->next(std::string(doing) + " " + shown(file.filename().string()));
}
/// Texts for messages that state what the program does with a file; values of the argument `doing`
/// of show().
constexpr const char* kCounting = "counting the rows of";
constexpr const char* kReading = "reading";

/// Returns a text such as "3 columns need a kind: 'a', 'b', 'c'". what: what the columns need, "a
/// kind" in this example. names: names of the columns.
std::string needs_text(const std::vector<std::string>& names, const char* what) {
  return (names.size() == 1 ? "1 column needs " : std::to_string(names.size()) + " columns need ") +
         what + ": " + column_list(names);
}

/// Throws InputError if the schema is incomplete. The message lists what is missing and what the
/// user can type. Last it names the option to read the missing parts from the rows, which gives up
/// the privacy guarantee.
void require_complete(const TableSchema& schema, const std::string& source, const fs::path& table) {
  std::vector<std::string> kinds, bounds;
  for (const Column& c : schema.columns)
    if (!is_complete(c))
      (std::holds_alternative<Unstated>(c.kind) ? kinds : bounds).push_back(c.name);
  if (kinds.empty() && bounds.empty()) return;
  std::string text = source + ": ";
  if (!kinds.empty()) text += needs_text(kinds, "a kind");
  if (!bounds.empty())
    text +=
        (kinds.empty() ? "" : "; ") + needs_text(bounds, "public bounds, categories or classes");
  if (source == table.string())
    text += "; `cudp schema " + source + " --out " + source +
            ".schema.toml` drafts a schema to state them in";
  else
    text += R"(; state what is known in public, as in kind = "numeric", min = 0, max = 120)";
  throw InputError(text +
                   " (--accept-private-bounds reads them from the private rows in place of that, "
                   "outside of what epsilon covers: the run is then not for release)");
}

/// Line of a certificate's unsafe_flags about a schema that is not public.
constexpr const char* kReadFromRows = "bounds, categories or classes were read from private rows";

/// Returns whether a schema is in the folder that a run released, with parts that the run read from
/// private rows, according to its certificate. Links are followed; a copy elsewhere is not
/// recognised.
bool was_read_from_rows(const fs::path& schema) {
  std::error_code none;
  const fs::path certificate = fs::weakly_canonical(schema, none).parent_path() / "privacy.json";
  if (!fs::is_regular_file(schema, none) || !fs::is_regular_file(certificate, none)) return false;
  const auto json = nlohmann::json::parse(read_file(certificate), nullptr, false);
  if (!json.is_object() || !json.contains("unsafe_flags")) return false;
  for (const auto& flag : json["unsafe_flags"])
    if (flag == kReadFromRows) return true;
  return false;
}

/// Returns the schema with missing parts taken from the rows of `table`. The user must have
/// accepted that; it is recorded in `unsafe`.
TableSchema completed(const TableSchema& schema, const fs::path& table, bool accepted,
                      Busy* progress, std::vector<std::string>& unsafe) {
  if (first_incomplete(schema).empty()) return schema;
  ensure(accepted, "an incomplete schema is refused before rows are read");
  unsafe.emplace_back(kReadFromRows);
  show(progress, "reading the bounds of", table);
  return complete_from_rows(schema, *open_bytes(table, progress, compression_of(schema)));
}

/// Number of used rows in each of two parts of a table, e.g. training rows and test rows. A row is
/// used unless it exceeds the limit of rows per unit of privacy (max_rows).
struct PartSizes {
  std::uint64_t train = 0;
  std::uint64_t other = 0;
};

/// Counts the used rows of a table in two parts: `other`, the rows for which is_other(row, first)
/// returns true, and `train`, all others. `first` is the index of the first row of the row's unit
/// of privacy. Reads only the cells of the unit's column. May stop at a faulty row, because the
/// caller finds the fault again when it reads the table. bytes: the table's file. IsOther: type of
/// is_other().
template <class IsOther>
PartSizes count_parts(ByteReader& bytes, const TableSchema& schema, const TableOptions& options,
                      const IsOther& is_other) {
  TableFaults faults(bytes.name());
  TableRows rows(bytes, schema, faults, options.malformed);
  std::optional<FirstRows> units;
  if (options.units && schema.unit) units.emplace(schema, options.malformed);
  PartSizes sizes;
  for (TableRow row; rows.next(row);) {
    if (units && !units->uses(row, faults)) continue;
    const std::uint64_t first = units ? units->first() : sizes.train + sizes.other;
    ++(is_other(row, first) ? sizes.other : sizes.train);
  }
  return sizes;
}

/// Reads the rows of a table that belong to one rank (process). The rows are counted first: the
/// range of a rank depends on the number of rows, and memory can be allocated once. (A vector that
/// grows would take twice the memory.)
Dataset read_rows(const fs::path& file, const Claim& claim, const TableSchema& schema,
                  const TableOptions& options, Busy* progress, Share share = {}) {
  const bool by_units = options.units && schema.unit && !share.is_all();
  const Compression compression =
      claim.set.empty() ? compression_of(schema) : Compression::by_content;
  show(progress, kCounting, file);
  const auto counted = open_bytes(file, progress, compression);
  const std::uint64_t rows = by_units
                                 ? count_parts(*counted, schema, options,
                                               [](const TableRow&, std::uint64_t) { return false; })
                                       .train
                                 : count_rows(*counted, schema);
  show(progress, kReading, file);
  Dataset set;
  read_claimed(
      file, claim,
      [&](ByteReader& reader) { set = read_table(reader, schema, options, rows, share); }, progress,
      compression);
  return set;
}

/// Reads the rows of a table that belong to one rank (process), divided into training rows and
/// held-out rows by `draws`.
HeldOut read_held_out(const fs::path& file, const TableSchema& schema, const TableOptions& options,
                      HoldOutDraws draws, Busy* progress, Share share) {
  show(progress, kCounting, file);
  const PartSizes sizes =
      count_parts(*open_bytes(file, progress, compression_of(schema)), schema, options,
                  [&](const TableRow&, std::uint64_t first) { return draws.holds_out(first); });
  show(progress, kReading, file);
  const auto bytes = open_bytes(file, progress, compression_of(schema));
  TableReader reader(*bytes, schema, options);
  HoldOutSplitter splitter(
      std::move(draws),
      kept_rows(reader.empty(), schema, options, share, sizes.train, bytes->name()),
      kept_rows(reader.empty(), schema, options, share, sizes.other, bytes->name()));
  TableBlock block;
  while (reader.next(block)) splitter.take(block.examples);
  return splitter.finish(file.string());
}

/// Reads a table that was published without a test set, and divides its rows into training and test
/// rows: a row is a test row if is_published_test_row() returns true for it.
void read_published(const TableFiles& files, const TableSchema& schema, TableOptions options,
                    Share share, DataSplit& split) {
  PartSizes sizes;
  if (!share.is_all())
    read_claimed(files.train, files.claim_of_train, [&](ByteReader& bytes) {
      sizes = count_parts(bytes, schema, options, [](const TableRow& row, std::uint64_t) {
        return is_published_test_row(row.text);
      });
    });
  options.row_texts = true;
  options.max_rows = 1;  // each block goes to one of the two parts
  options.ahead = false;
  read_claimed(files.train, files.claim_of_train, [&](ByteReader& bytes) {
    TableReader reader(bytes, schema, options);
    KeptRange train = kept_rows(reader.empty(), schema, options, share, sizes.train, bytes.name());
    KeptRange test = kept_rows(reader.empty(), schema, options, share, sizes.other, bytes.name());
    TableBlock block;
    while (reader.next(block))
      (is_published_test_row(block.rows[0]) ? test : train).take(block.examples);
    split.train = train.finish(bytes.name());
    split.test = test.finish(bytes.name());
  });
  split.notes.emplace_back("the test set is a fifth of the published rows, chosen by their text");
}

/// Default size of a vocabulary that is made by counting the words of the texts.
constexpr std::size_t kCountedWords = 20'000;

/// Returns the maximum number of words in a vocabulary made by counting: the user's number or the
/// default, but no more than there are word ids. A larger number is not an error, because an error
/// would reveal how many different words the texts have.
std::size_t max_counted(const TextOptions& options) {
  const auto asked = static_cast<std::size_t>(options.vocabulary_size);
  return std::min<std::size_t>(asked > 0 ? asked : kCountedWords,
                               kMaxWords - count_of(Marks::four));
}

/// Returns the tokenizer and vocabulary for the schema's texts; null if it has no text column. Adds
/// a line to `unsafe` if the words of the vocabulary were chosen from private texts, or may have
/// been.
std::shared_ptr<const TextCoder> coder_for(const TableSchema& schema, const fs::path& table,
                                           const DataRequest& request,
                                           std::vector<std::string>& unsafe) {
  if (!is_text(schema)) return nullptr;
  if (request.coder != nullptr) return request.coder;
  const TextOptions& options = request.text;
  std::optional<std::vector<std::string>> counted;
  const bool listed = !options.vocabulary.empty() || !options.embedding.empty();
  if (!listed && request.accept_private_bounds && options.tokenizer == Tokenizer::words) {
    show(request.progress, "counting the words of", table);
    counted = count_words(*open_bytes(table, request.progress, compression_of(schema)), schema)
                  .most_frequent(max_counted(options));
    unsafe.emplace_back("vocabulary counted from private text");
  }
  if (!options.vocabulary.empty() && !options.vocabulary_is_public)
    unsafe.emplace_back("vocabulary not declared public: it may be counted from private text");
  return std::make_shared<TextCoder>(make_coder(options, request.dir, std::move(counted)));
}

DataSplit read_split(const TableFiles& files, const TableSchema& stated,
                     const DataRequest& request) {
  DataSplit split;
  const TableSchema schema =
      completed(stated, files.train, request.accept_private_bounds, request.progress, split.unsafe);
  split.schema = std::make_shared<TableSchema>(schema);
  split.text = coder_for(schema, files.train, request, split.unsafe);
  const TableOptions options{
      .malformed = request.malformed, .coder = split.text.get(), .storage = request.storage};
  if (files.where == TestRows::among_train) {
    read_published(files, schema, options, request.share, split);
    return split;
  }
  TableOptions of_train = options;
  of_train.units = true;
  if (schema.unit) split.unit_rows = schema.unit->max_rows;
  const bool holds_out = files.where == TestRows::none && request.holdout.has_value();
  split.held_out = holds_out;
  // A published table is read again even if its converted rows were kept, because its content must
  // be compared with the published one.
  if (request.share.is_all() && files.claim_of_train.set.empty())
    split.coding = coding_of(files.train, schema);
  const bool kept =
      request.kept != nullptr && take_kept(*request.kept, split.coding, holds_out,
                                           RowEncoder(schema, options.coder).empty(), split);
  if (kept && holds_out) return split;
  if (holds_out) {
    HeldOut parts = read_held_out(files.train, schema, of_train, *request.holdout, request.progress,
                                  request.share);
    split.train = std::move(parts.train);
    split.test = std::move(parts.held);
    return split;
  }
  if (!kept)
    split.train = read_rows(files.train, files.claim_of_train, schema, of_train, request.progress,
                            request.share);
  split.test = files.where == TestRows::file ? read_rows(files.test, files.claim_of_test, schema,
                                                         options, request.progress, request.share)
                                             : RowEncoder(schema, options.coder).empty();
  return split;
}

Claim claim_of(const NamedDataset& named, const std::string& file, const fs::path& train) {
  return {.set = named.name,
          .file = file,
          .own = "for rows of your own, which are private: --dataset " + train.string() +
                 " --schema FILE"};
}

/// Throws InputError if malformed cells are to count as missing but the schema does not state what
/// a missing cell means in each column.
void check_malformed(const DataRequest& request, const TableSchema& schema) {
  if (request.malformed == Malformed::refuse) return;
  const std::string source =
      request.schema.empty() ? "schema of " + request.dataset : request.schema;
  const std::string open = first_incomplete(schema);
  if (!open.empty())
    bad_input(source, "column " + shown(open),
              "public bounds or categories for --malformed missing, and what a cell that cannot be "
              "read stands for",
              "none");
  require_missing_codes(schema, source);
}

/// Returns the assumptions about the table on which the guarantee rests, as sentences for the
/// certificate. One of them is about quoted cells: a quote that is opened on one line makes the
/// following lines part of the same row until it is closed, so that one row can affect others.
std::vector<std::string> assumptions(const DataRequest& request, const TableSchema& schema) {
  std::vector<std::string> all = {
      schema.quotes ? "a row is what the table's quotes and line breaks make one, and one example "
                      "adds one such row"
                    : "a row is a line of the table, and one example adds one line"};
  if (request.malformed == Malformed::refuse)
    all.emplace_back(
        "every row of the table can be read: a training on a table with one that cannot is "
        "refused, and that is not counted");
  if (schema.unit)
    all.emplace_back(
        "a unit is what has one text in the column of units: whoever has two texts "
        "there is two units");
  if (schema.unit && request.malformed == Malformed::missing)
    all.emplace_back("a row whose unit is missing or cannot be read is not used");
  if (schema.unit && request.size_is_public)
    all.emplace_back("the number of rows that are used, those that max_rows leaves, is public");
  if (is_text(schema) && !request.text.embedding.empty() &&
      !is_named_embedding(request.text.embedding))
    all.emplace_back(
        "the vectors of --embedding and their words are public: no private text decided them");
  return all;
}

/// Returns the table's schema, as far as it is known without reading rows, and the name of the
/// schema's source. If the user gives no schema, the returned schema has only the names of the
/// columns, from the table's header, and the source is the table itself.
FoundSchema known_schema(const DataRequest& request) {
  if (std::optional<FoundSchema> found = find_schema(request)) return std::move(*found);
  const fs::path path = request.dataset;
  return {schema_from_header(*open_bytes(path), delimiter_of(path)), path.string()};
}

/// Returns the schema known before rows are read. may_read_rows: the schema may be incomplete,
/// because the caller completes it from the rows. If false, throws InputError on an incomplete
/// schema.
TableSchema stated_schema(const DataRequest& request, bool may_read_rows) {
  FoundSchema found = known_schema(request);
  if (!may_read_rows) require_complete(found.schema, found.source, request.dataset);
  check_malformed(request, found.schema);
  return std::move(found.schema);
}

}  // namespace

bool is_published_test_row(std::string_view text) {
  std::uint64_t z = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : text) z = (z ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;  // SplitMix64's mixing
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return static_cast<double>(z >> 11) * 0x1p-53 < 0.2;
}

void check_named_table(const DataRequest& request) {
  if (!request.test_path.empty())
    throw InputError("test table: expected only with a table given by its path, found " +
                     shown(request.test_path) + " with " + request.dataset);
  if (!request.schema.empty())
    throw InputError("--schema: expected none with --dataset " + request.dataset +
                     ", which has a schema of its own, found " + shown(request.schema, 200) +
                     "; for rows of your own, which are private: --dataset FILE --schema FILE");
}

DataSplit load_named_table(const DataRequest& request, const NamedDataset& named,
                           const fs::path& folder) {
  const std::string& train = named.marker_files.front();
  TableFiles files{.train = require_file(folder, {train}), .where = TestRows::among_train};
  files.claim_of_train = claim_of(named, train, files.train);
  if (!named.test.empty()) {
    files.test = require_file(folder, {named.test});
    files.where = TestRows::file;
    files.claim_of_test = claim_of(named, named.test, files.train);
  }
  return read_split(files, parse_schema(shipped_schema(named.name), named.name + ".toml"), request);
}

DataSplit load_table_file(const DataRequest& request) {
  if (!request.test_path.empty()) check_apart(request.test_path, {request.dataset});
  const TableSchema schema = stated_schema(request, request.accept_private_bounds);
  const std::string source = known_schema(request).source;
  const bool is_private = was_read_from_rows(source);
  if (is_private && !request.accept_private_bounds)
    throw InputError(source +
                     ": expected public bounds, categories and classes, found those that a run "
                     "read from private rows (--accept-private-bounds takes them, outside of what "
                     "epsilon covers: the run is then not for release)");
  DataSplit split =
      read_split({.train = request.dataset,
                  .test = request.test_path,
                  .where = request.test_path.empty() ? TestRows::none : TestRows::file},
                 schema, request);
  if (is_private && std::ranges::find(split.unsafe, kReadFromRows) == split.unsafe.end())
    split.unsafe.emplace_back(kReadFromRows);
  split.name = schema.name;
  split.assumptions = assumptions(request, schema);
  return split;
}

TestData load_table_rows(const DataRequest& request) {
  const bool apart = !request.test_path.empty();
  std::vector<std::string> unsafe;
  // Missing parts of the schema are taken from the training rows. These are known only if the rows
  // to score are in a file of their own, test_path; request.dataset is then the training table.
  const bool may_read_rows = request.accept_private_bounds && apart;
  const TableSchema stated = stated_schema(request, may_read_rows);
  const TableSchema schema =
      completed(stated, request.dataset, may_read_rows, request.progress, unsafe);
  const auto coder = coder_for(schema, request.dataset, request, unsafe);
  return {stated.name,
          read_rows(apart ? request.test_path : request.dataset, Claim{}, schema,
                    {.malformed = request.malformed, .coder = coder.get()}, request.progress)};
}

}  // namespace cudp
