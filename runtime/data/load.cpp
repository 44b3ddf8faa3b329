#include "runtime/data/load.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <stdexcept>
#include <system_error>

#include "runtime/base/error.hpp"
#include "runtime/data/bytes.hpp"
#include "runtime/data/glyphs.hpp"
#include "runtime/data/sources.hpp"
#include "runtime/data/text.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;

constexpr std::array kNamed = {"glyphs", "sentences", "mnist",    "fashion-mnist", "cifar-10",
                               "adult",  "bank",      "ipums-br", "imdb"};
constexpr std::array kNamedTables = {"adult", "bank", "ipums-br", "imdb"};
constexpr std::uint64_t kGlyphSeed = 1;
constexpr std::size_t kGlyphTrain = 12'000;
constexpr std::size_t kGlyphTest = 2'000;

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

DataSplit load_named(const DataRequest& request) {
  const std::string& name = request.dataset;
  if (std::find(kNamedTables.begin(), kNamedTables.end(), name) != kNamedTables.end())
    return load_named_table(request);
  if (!request.schema.empty() || !request.test_path.empty())
    throw InputError("schema or test table: expected only with a table, found with " + name);
  if (name == "cifar-10")
    return load_cifar_folder(named_folder(request, {"data_batch_1.bin"}), {.set = name});
  if (name == "sentences") return load_sentences(request);
  if (name != "glyphs")
    return load_idx_folder(named_folder(request, kIdxTrainImages), {.set = name});
  DataSplit split;
  split.train = make_glyphs(kGlyphSeed, 0, kGlyphTrain);
  split.test = make_glyphs(kGlyphSeed, kGlyphTrain, kGlyphTest);
  return split;
}

DataSplit load_folder(const DataRequest& request) {
  const fs::path folder = request.dataset;
  if (!request.schema.empty() || !request.test_path.empty())
    throw InputError("schema or test table: expected only with a table, found with the folder " +
                     folder.string());
  FolderFacts facts;
  if (request.classes != 0) facts.classes = request.classes;
  for (const std::string& stem : kIdxTrainImages)
    if (!find_file(folder, stem).empty()) return load_idx_folder(folder, facts);
  if (!find_file(folder, "data_batch_1.bin").empty()) return load_cifar_folder(folder, facts);
  bad_input(folder.string(), "",
            "IDX files (train-images-idx3-ubyte, ...) or CIFAR batches (data_batch_1.bin, ...), "
            "plain, .gz or .xz",
            "neither");
}

/// The last part of the path without the endings of tables and compression.
std::string name_of(const fs::path& path) {
  fs::path name = path.has_filename() ? path.filename() : path.parent_path().filename();
  for (const char* ending : {".gz", ".xz", ".csv", ".tsv"})
    if (name.extension() == ending) name.replace_extension();
  return name.string();
}

/// Settings of texts are a mistake where there are none.
void check_texts(const DataRequest& request, const DataSplit& split) {
  if (!split.train.is_text() && request.text != TextOptions{})
    throw InputError(
        "--tokens, --keep, --tokenizer, --vocabulary and --embedding: expected with texts only, "
        "found with " +
        request.dataset);
}

/// Published sets have known classes, and those of a table are in its schema.
void check_classes(const DataRequest& request) {
  if (request.classes == 0) return;
  const bool named = is_named_dataset(request.dataset);
  if (named || !is_folder(request.dataset))
    throw InputError(
        "--classes: expected with a folder of images only, found with " + request.dataset +
        (named ? "" : "; the classes of a table are the values of its schema's label"));
}

DataSplit load(const DataRequest& request) {
  check_classes(request);
  if (is_named_dataset(request.dataset)) {
    DataSplit split = load_named(request);
    check_texts(request, split);
    split.name = request.dataset;
    split.size_is_public = true;
    split.test_is_public = true;
    return split;
  }
  std::error_code ignored;
  if (!fs::exists(request.dataset, ignored)) {
    std::string names;
    for (const char* name : kNamed) names.append(name).append(", ");
    bad_input("dataset " + shown(request.dataset, 200), "",
              names + "or the path of a folder or a table", "no such file or folder");
  }
  DataSplit split = is_folder(request.dataset) ? load_folder(request) : load_table_file(request);
  check_texts(request, split);
  if (split.name.empty()) split.name = name_of(request.dataset);
  split.size_is_public = request.size_is_public;
  split.test_is_public = request.test_is_public;
  return split;
}

/// Runs `load`; a data set that does not fit is told by its name.
template <class Load>
auto with_memory(const DataRequest& request, const Load& load) {
  try {
    return load();
  } catch (const std::bad_alloc&) {
    throw Error(request.dataset + ": not enough memory for this data set");
  } catch (const std::length_error&) {
    throw Error(request.dataset + ": not enough memory for this data set");
  }
}

}  // namespace

fs::path find_file(const fs::path& folder, const std::string& stem) {
  for (const char* ending : {"", ".gz", ".xz"}) {
    fs::path path = folder / (stem + ending);
    std::error_code ignored;
    if (fs::exists(path, ignored)) return path;
  }
  return {};
}

fs::path require_file(const fs::path& folder, const std::vector<std::string>& stems) {
  std::string names;
  for (const std::string& stem : stems) {
    fs::path path = find_file(folder, stem);
    if (!path.empty()) return path;
    names.append(names.empty() ? "" : " or ").append(stem);
  }
  bad_input(folder.string(), "", names + ", plain, .gz or .xz", "no such file");
}

fs::path named_folder(const DataRequest& request, const std::vector<std::string>& stems) {
  const fs::path top = request.dir.empty() ? "data" : request.dir;
  std::vector<fs::path> folders = {top / request.dataset};
  // MNIST and Fashion-MNIST have the same file names: a folder named after one is not the other.
  const std::string own = name_of(top);
  if (own == request.dataset || !is_named_dataset(own)) folders.push_back(top);
  for (const fs::path& folder : folders)
    for (const std::string& stem : stems)
      if (!find_file(folder, stem).empty()) return folder;
  bad_input(top.string(), "",
            stems.front() + ", plain, .gz or .xz, in " + (top / request.dataset).string() + " or " +
                top.string(),
            "neither; scripts/fetch_data.sh " + request.dataset + " downloads it");
}

void check_apart(const fs::path& test, const std::vector<fs::path>& train) {
  for (const fs::path& file : train) {
    std::error_code ignored;  // a file that is not there is refused where it is read
    if (fs::equivalent(test, file, ignored))  // by device and inode
      bad_input(test.string(), "", "test rows in a file of their own",
                "the file of the training rows, " + file.string());
  }
}

bool is_named_dataset(const std::string& name) {
  return std::find(kNamed.begin(), kNamed.end(), name) != kNamed.end();
}

DataSplit load_data(const DataRequest& request) {
  return with_memory(request, [&] { return load(request); });
}

TestData load_test_data(const DataRequest& request) {
  return with_memory(request, [&]() -> TestData {
    std::error_code ignored;
    const bool table = !is_named_dataset(request.dataset) && !is_folder(request.dataset) &&
                       fs::exists(request.dataset, ignored);
    if (!table) {
      DataSplit split = load(request);
      return {split.name, std::move(split.test)};
    }
    TestData rows = load_table_rows(request);
    if (rows.name.empty()) rows.name = name_of(request.dataset);
    return rows;
  });
}

}  // namespace cudp
