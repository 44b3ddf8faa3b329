#include "runtime/data/named_datasets.hpp"

#include <algorithm>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/data/bytes.hpp"
#include "runtime/data/folders.hpp"
#include "runtime/data/sources.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;

DataSplit idx_images(const DataRequest& request, const NamedDataset& named,
                     const fs::path& folder) {
  return load_idx_folder(folder, {.set = named.name, .share = request.share});
}

DataSplit cifar_images(const DataRequest& request, const NamedDataset& named,
                       const fs::path& folder) {
  return load_cifar_folder(folder, {.set = named.name, .share = request.share});
}

template <DataSplit (*load)(const DataRequest&)>
DataSplit built_in(const DataRequest& request, const NamedDataset&, const fs::path&) {
  return load(request);
}

NamedDataset table(const char* name, const char* folder, const char* train, const char* test,
                   std::uint64_t rows) {
  return {.name = name,
          .folder = folder,
          .marker_files = {train},
          .test = test,
          .is_table = true,
          .rows = rows,
          .load = load_named_table};
}

const NamedDataset* find_named(std::string_view name) {
  const auto all = named_datasets();
  const auto found = std::ranges::find(all, name, &NamedDataset::name);
  return found == all.end() ? nullptr : &*found;
}

/// Returns the folder that has the data set's files: the subfolder of request.dir with the data
/// set's name, or request.dir itself. Throws InputError, with the name of the script that downloads
/// the data set, if neither has them. Returns an empty path for a built-in data set, which has no
/// files.
fs::path folder_of(const NamedDataset& named, const DataRequest& request) {
  if (named.folder.empty()) return {};
  const fs::path top = request.dir.empty() ? "data" : request.dir;
  std::vector<fs::path> folders = {top / named.folder};
  // MNIST and Fashion-MNIST have the same file names, so a folder named after one does not count as
  // the other.
  const std::string own = set_name_of(top);
  if (own == named.folder || !is_named_dataset(own)) folders.push_back(top);
  for (const fs::path& folder : folders)
    for (const std::string& file : named.marker_files)
      if (!find_file(folder, file).empty()) return folder;
  bad_input(top.string(), "",
            named.marker_files.front() + ", plain, .gz or .xz, in " +
                (top / named.folder).string() + " or " + top.string(),
            "neither; scripts/fetch_data.sh " + named.folder + " downloads it");
}

}  // namespace

std::span<const NamedDataset> named_datasets() {
  static const std::vector<NamedDataset> rows = {
      {.name = "glyphs", .rows = 12'000, .load = built_in<load_glyphs>},
      {.name = "sentences", .rows = 8'000, .load = built_in<load_sentences>},
      {.name = "mnist",
       .folder = "mnist",
       .marker_files = kIdxTrainImages,
       .rows = 60'000,
       .load = idx_images},
      {.name = "fashion-mnist",
       .folder = "fashion-mnist",
       .marker_files = kIdxTrainImages,
       .rows = 60'000,
       .load = idx_images},
      {.name = "cifar-10",
       .folder = "cifar-10",
       .marker_files = {kCifarTrainImages},
       .rows = 50'000,
       .load = cifar_images},
      table("adult", "adult", "adult.data", "adult.test", 32'561),
      // Four fifths of 45,211 and of 38,000 rows: those that is_published_test_row() leaves.
      table("bank", "bank", "BANK.dat", "", 36'283),
      table("ipums-br", "ipums", "IPUMS-BR.dat", "", 30'370),
      table("imdb", "imdb", "imdb_train.tsv", "imdb_test.tsv", 25'000),
  };
  return rows;
}

bool is_named_dataset(std::string_view name) { return find_named(name) != nullptr; }

std::uint64_t published_rows(std::string_view name) {
  const NamedDataset* const named = find_named(name);
  return named != nullptr ? named->rows : 0;
}

DataSplit load_named(const DataRequest& request) {
  const NamedDataset* const named = find_named(request.dataset);
  if (named == nullptr) throw Error("no named data set: " + request.dataset);
  if (named->is_table)
    check_named_table(request);
  else if (!request.schema.empty() || !request.test_path.empty())
    throw InputError("schema or test table: expected only with a table, found with " +
                     request.dataset);
  DataSplit split = named->load(request, *named, folder_of(*named, request));
  split.name = named->name;
  split.size_is_public = true;
  split.test_is_public = true;
  split.test_given = true;
  return split;
}

}  // namespace cudp
