#include "runtime/data/kept_table.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"
#include "runtime/data/examples.hpp"
#include "runtime/data/row_file.hpp"
#include "runtime/data/schema_text.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

using IndexJson = nlohmann::json;

/// Version of the format of the files that keep_table() writes. Files with another version are not
/// used.
constexpr int kFormat = 1;
/// Name of the index file: a line of JSON, and the arrays of the training rows and of the held-out
/// rows other than features.
constexpr const char* kIndex = "rows-index";
/// Name of the file with the features of the training rows.
constexpr const char* kTrained = "rows";
/// Name of the file with the features of the held-out rows.
constexpr const char* kHeld = "rows-held-out";

/// Calls visit(array) for each array of a data set that is stored in the index file (kIndex): all
/// but its features. Data: Dataset, const or not. Visit: type of the function visit().
template <class Data, class Visit>
void visit_arrays(Data& data, const Visit& visit) {
  visit(data.lengths);
  visit(data.labels);
  visit(data.targets);
  visit(data.numbers);
  visit(data.first_rows);
}

template <class Array>
std::string_view bytes_of(const Array& array) {
  return {reinterpret_cast<const char*>(array.data()), array.size() * sizeof(*array.data())};
}

/// Stores the features of the training rows or of the held-out rows of a table in the file `path`.
/// If they are already in an unnamed file, gives this file the name `path`. Returns false if that
/// is not possible.
bool keep_features(const Dataset& part, const fs::path& path) {
  if (part.rows != nullptr) return part.rows->link_to(path);
  StagedFile file(path, 0600);
  if (part.is_coded())
    file.write(bytes_of(part.coded));
  else if (part.is_text())
    file.write(bytes_of(part.tokens));
  else
    return false;
  file.publish();
  return true;
}

IndexJson counts_of(const Dataset& part) {
  IndexJson counts = IndexJson::array();
  visit_arrays(part, [&](const auto& array) { counts.push_back(array.size()); });
  return {{"counts", counts}, {"row_bytes", feature_bytes(part)}};
}

/// Reads the arrays of the training rows or of the held-out rows from the index file, and opens the
/// file with their features. Returns false if the index is damaged. left: number of bytes of the
/// index that are not read yet; limits the memory that a wrong array size in a damaged index can
/// allocate.
bool read_part(const IndexJson& about, const fs::path& features, std::istream& index,
               std::uint64_t& left, Dataset& part) {
  std::size_t k = 0;
  bool whole = true;
  keep_arrays_in(features.parent_path(), part);
  visit_arrays(part, [&](auto& array) {
    const auto count = about.at("counts").at(k++).get<std::uint64_t>();
    const std::uint64_t width = sizeof(*array.data());
    whole = whole && count <= left / width;
    if (!whole) return;
    left -= count * width;
    array.resize(count);
    index.read(reinterpret_cast<char*>(array.data()), static_cast<std::streamsize>(count * width));
    whole = index.good() || count == 0;
  });
  if (!whole) return false;
  part.rows = open_rows(features, 0, about.at("row_bytes").get<std::size_t>(), part.size(),
                        features.parent_path());
  return true;
}

/// Returns whether rows that an earlier process stored have the same shape and kind of features as
/// `empty`, so that this run can use them. The feature values are checked later, when they are read
/// (FetchedExamples).
bool fits(const Dataset& part, const Dataset& empty) {
  const auto whole = [&](const auto& array) {
    return array.empty() || array.size() == part.size();
  };
  const auto below = [](const auto& array, std::int64_t bound) {
    return std::ranges::all_of(array, [&](auto x) { return x < bound; });
  };
  return part.rows != nullptr && part.rows->row_bytes() == feature_bytes(empty) &&
         whole(part.lengths) && whole(part.targets) && whole(part.numbers) &&
         whole(part.first_rows) &&
         part.targets.empty() != (empty.has_targets() && part.size() > 0) &&
         part.lengths.empty() != (empty.is_text() && part.size() > 0) &&
         below(part.labels, empty.classes) && below(part.lengths, empty.shape.size() + 1) &&
         std::ranges::all_of(part.targets, [](float y) { return y >= -1.0f && y <= 1.0f; });
}

/// Returns a data set that has the rows, labels and targets of `part`, and all other properties,
/// such as the shape and the number of classes, of `empty`.
Dataset with_facts(Dataset part, const Dataset& empty) {
  Dataset out = empty_like(empty);
  out.rows = std::move(part.rows);
  out.lengths = std::move(part.lengths);
  out.labels = std::move(part.labels);
  out.targets = std::move(part.targets);
  out.numbers = std::move(part.numbers);
  out.first_rows = std::move(part.first_rows);
  return out;
}

}  // namespace

std::string coding_of(const fs::path& table, const TableSchema& schema) {
  struct stat about {};
  if (::stat(table.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) return "";
  std::string columns;
  try {
    columns = schema_toml(schema);
  } catch (const Error&) {  // a name that is not UTF-8
    return "";
  }
  return IndexJson{{"table", fs::absolute(table).lexically_normal().string()},
                   {"bytes", about.st_size},
                   {"changed", about.st_mtim.tv_sec},
                   {"nanoseconds", about.st_mtim.tv_nsec},
                   {"schema", columns}}
      .dump(-1, ' ', true, IndexJson::error_handler_t::replace);
}

void keep_table(const DataSplit& data, const fs::path& folder) {
  remove_kept_table(folder);
  if (data.coding.empty() || data.train.rows == nullptr) return;
  if (!keep_features(data.train, folder / kTrained)) return;
  if (data.held_out && !keep_features(data.test, folder / kHeld)) {
    remove_kept_table(folder);
    return;
  }
  IndexJson index = {
      {"format", kFormat}, {"coding", data.coding}, {"parts", {counts_of(data.train)}}};
  if (data.held_out) index["parts"].push_back(counts_of(data.test));
  StagedFile file(folder / kIndex, 0600);
  file.write(index.dump() + "\n");
  visit_arrays(data.train, [&](const auto& array) { file.write(bytes_of(array)); });
  if (data.held_out)
    visit_arrays(data.test, [&](const auto& array) { file.write(bytes_of(array)); });
  file.publish();
}

std::shared_ptr<KeptTable> kept_table(const fs::path& folder) {
  try {
    std::ifstream file(folder / kIndex, std::ios::binary);
    std::string line;
    if (!file || !std::getline(file, line)) return nullptr;
    const IndexJson index = IndexJson::parse(line);
    const IndexJson& parts = index.at("parts");
    if (index.at("format") != kFormat || parts.empty() || parts.size() > 2) return nullptr;
    std::uint64_t left = fs::file_size(folder / kIndex) - line.size() - 1;
    auto kept = std::make_shared<KeptTable>();
    kept->coding = index.at("coding");
    kept->has_held = parts.size() == 2;
    if (!read_part(parts[0], folder / kTrained, file, left, kept->train)) return nullptr;
    if (kept->has_held && !read_part(parts[1], folder / kHeld, file, left, kept->held))
      return nullptr;
    return left == 0 ? kept : nullptr;
  } catch (const IndexJson::exception&) {
    return nullptr;
  } catch (const Error&) {  // the features are missing or cut short
    return nullptr;
  } catch (const fs::filesystem_error&) {
    return nullptr;
  }
}

void remove_kept_table(const fs::path& folder) {
  for (const char* name : {kIndex, kTrained, kHeld}) {
    std::error_code ignored;
    fs::remove(folder / name, ignored);
  }
}

bool take_kept(KeptTable& kept, const std::string& coding, bool holds_out, const Dataset& empty,
               DataSplit& split) {
  if (coding.empty() || kept.is_used || kept.coding != coding || kept.has_held != holds_out ||
      !fits(kept.train, empty) || (holds_out && !fits(kept.held, empty)))
    return false;
  kept.is_used = true;
  split.train = with_facts(std::move(kept.train), empty);
  if (holds_out) split.test = with_facts(std::move(kept.held), empty);
  return true;
}

}  // namespace cudp
