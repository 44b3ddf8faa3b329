#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "runtime/data/bytes.hpp"
#include "runtime/data/sources.hpp"
#include "runtime/data/table.hpp"
#include "runtime/error.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLongestSchema = std::uint64_t{16} << 20;

/// Which rows are held out for testing: a hash of the row's number and the seed, so that it depends
/// on no other row and not on what the row holds.
bool is_held_out(std::uint64_t row, std::uint64_t seed, double fraction) {
  std::uint64_t z = seed;
  for (const std::uint64_t word : {std::uint64_t{0}, row}) {  // SplitMix64's mixing, twice
    z += word + 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
  }
  return static_cast<double>(z >> 11) * 0x1p-53 < fraction;
}

TableSchema read_schema(const fs::path& path) {
  const auto reader = open_bytes(path);
  std::vector<std::uint8_t> text;
  append_bytes(*reader, kLongestSchema, text);
  expect_end(*reader, "16 MiB");
  return parse_schema({reinterpret_cast<const char*>(text.data()), text.size()}, path.string());
}

/// data.csv.gz is described by data.csv.gz.schema.toml or data.csv.schema.toml.
std::optional<fs::path> schema_beside(const fs::path& table) {
  fs::path plain = table;
  if (plain.extension() == ".gz" || plain.extension() == ".xz") plain.replace_extension();
  for (const fs::path& stem : {table, plain}) {
    const fs::path path = stem.string() + ".schema.toml";
    std::error_code ignored;
    if (fs::exists(path, ignored)) return path;
  }
  return std::nullopt;
}

struct TableFiles {
  fs::path train;
  fs::path test;  ///< empty: rows of `train` are held out
};

DataSplit read_split(const TableFiles& files, TableSchema schema, const DataRequest& request) {
  const bool hold_out = files.test.empty();
  if (hold_out && !(request.test_fraction > 0.0 && request.test_fraction < 1.0))
    throw InputError("test fraction: expected a number above 0 and below 1, found " +
                     std::to_string(request.test_fraction));
  const auto is_training = [&](std::uint64_t row) {
    return !hold_out || !is_held_out(row, request.split_seed, request.test_fraction);
  };

  DataSplit split;
  if (const std::string open = first_incomplete(schema); !open.empty()) {
    if (!request.accept_private_bounds)
      bad_input(files.train.string(), "column " + shown(open),
                "public bounds or categories in a schema",
                "none; --accept-private-bounds reads them from the private rows");
    schema = complete_from_rows(schema, *open_bytes(files.train), is_training);
    split.unsafe.push_back("bounds, categories or classes were read from private rows");
  }

  const RowEncoder encoder(schema);
  split.train = encoder.empty();
  split.test = encoder.empty();
  // Counting first keeps memory at what the features need: a vector that grows holds twice that.
  std::uint64_t rows[2] = {0, 0};
  count_rows(*open_bytes(files.train), schema,
             [&](std::uint64_t row) { ++rows[is_training(row) ? 0 : 1]; });
  if (!hold_out) count_rows(*open_bytes(files.test), schema, [&](std::uint64_t) { ++rows[1]; });
  encoder.reserve(split.train, rows[0]);
  encoder.reserve(split.test, rows[1]);
  for_each_row(*open_bytes(files.train), schema, [&](const TableRow& row) {
    encoder.append(row, is_training(row.number) ? split.train : split.test);
  });
  if (!hold_out)
    for_each_row(*open_bytes(files.test), schema,
                 [&](const TableRow& row) { encoder.append(row, split.test); });
  if (split.train.size() == 0 || split.test.size() == 0)
    bad_input(files.train.string(), "", "rows to train on and rows to hold out for testing",
              std::to_string(split.train.size()) + " and " + std::to_string(split.test.size()));
  if (hold_out)
    split.notes.emplace_back(
        "the test set is rows held out by a hash of the row number and the split seed");
  return split;
}

}  // namespace

DataSplit load_named_table(const DataRequest& request) {
  if (!request.test_path.empty())
    throw InputError("test table: expected only with a table given by its path, found " +
                     shown(request.test_path) + " with " + request.dataset);
  const bool adult = request.dataset == "adult";
  const bool ipums = request.dataset == "ipums-br";
  const std::string main = adult ? "adult.data" : ipums ? "IPUMS-BR.dat" : "BANK.dat";
  DataRequest place = request;
  if (ipums) place.dataset = "ipums";  // the folder's name
  const fs::path folder = named_folder(place, {main});
  TableFiles files{require_file(folder, {main}), {}};
  if (adult) files.test = require_file(folder, {"adult.test"});
  return read_split(files,
                    request.schema.empty()
                        ? parse_schema(shipped_schema(request.dataset), request.dataset + ".toml")
                        : read_schema(request.schema),
                    request);
}

DataSplit load_table_file(const DataRequest& request) {
  const fs::path path = request.dataset;
  std::optional<fs::path> schema_path = schema_beside(path);
  if (!request.schema.empty()) schema_path = request.schema;
  const bool tabs = path.filename().string().find(".tsv") != std::string::npos;
  TableSchema schema = schema_path ? read_schema(*schema_path)
                                   : schema_from_header(*open_bytes(path), tabs ? '\t' : ',');
  const std::string name = schema.name;
  DataSplit split = read_split({path, request.test_path}, std::move(schema), request);
  split.name = name;
  return split;
}

}  // namespace cudp
