#include "runtime/data/load.hpp"

#include <new>
#include <stdexcept>
#include <system_error>

#include "runtime/base/error.hpp"
#include "runtime/base/nearest.hpp"
#include "runtime/data/bytes.hpp"
#include "runtime/data/folders.hpp"
#include "runtime/data/sources.hpp"
#include "runtime/data/text.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;

constexpr Synonym kSynonyms[] = {{"fmnist", "fashion-mnist"}, {"census", "adult"},
                                 {"census-income", "adult"},  {"income", "adult"},
                                 {"digits", "mnist"},         {"reviews", "imdb"}};

/// Throws InputError if the user wants rows to stay in a file, but data of this kind (such as CIFAR
/// images) is always read into memory.
void check_in_memory(const DataRequest& request) {
  if (request.storage.where == RowsIn::file)
    throw InputError(
        "--rows-in: expected auto or memory with a built-in or published set, or with CIFAR files, "
        "which are small, found file with " +
        request.dataset);
}

DataSplit load_folder(const DataRequest& request) {
  const fs::path folder = request.dataset;
  if (!request.schema.empty() || !request.test_path.empty())
    throw InputError("schema or test table: expected only with a table, found with the folder " +
                     folder.string());
  FolderFacts facts;
  if (request.classes != 0) facts.classes = request.classes;
  facts.share = request.share;
  facts.storage = request.storage;
  const auto own = [](DataSplit split) {
    split.assumptions.emplace_back(kLabelsAreClasses);
    return split;
  };
  for (const std::string& stem : kIdxTrainImages)
    if (!find_file(folder, stem).empty()) return own(load_idx_folder(folder, facts));
  if (!find_file(folder, kCifarTrainImages).empty()) {
    check_in_memory(request);
    return own(load_cifar_folder(folder, facts));
  }
  bad_input(folder.string(), "",
            "IDX files (train-images-idx3-ubyte, ...) or CIFAR batches (data_batch_1.bin, ...), "
            "plain, .gz or .xz",
            "neither");
}

/// Throws InputError if text options are given for data without texts.
void check_texts(const DataRequest& request, const DataSplit& split) {
  if (!split.train.is_text() && request.text != TextOptions{})
    throw InputError(
        "--tokens, --keep, --tokenizer, --vocabulary and --embedding: expected with texts only, "
        "found with " +
        request.dataset);
}

/// Throws InputError if --classes is given for data with known classes: published sets, and tables,
/// whose schema states them.
void check_classes(const DataRequest& request) {
  if (request.classes == 0) return;
  const bool named = is_named_dataset(request.dataset);
  if (named || !(is_folder(request.dataset) || is_matrix(request.dataset)))
    throw InputError(
        "--classes: expected with a folder of images or a .npy or .npz file only, found with " +
        request.dataset +
        (named ? "" : "; the classes of a table are the values of its schema's label"));
}

/// Throws InputError if there are no training rows, or no test rows, and their number is public. If
/// the number is private, an empty set is accepted, so that no error reveals it; training then runs
/// as with one row.
void check_rows(const DataRequest& request, const DataSplit& split) {
  if (split.size_is_public && split.train.whole_size() == 0)
    bad_input(request.dataset, "", "at least one row", "none");
  if (split.test_is_public && split.test_given && split.test.whole_size() == 0)
    bad_input(request.test_path.empty() ? request.dataset : request.test_path, "",
              "at least one test row", "none");
}

/// Throws InputError if an option does not apply to this kind of data: the options for labels and
/// arrays require arrays (.npy, .npz), and `malformed` requires a table or array of the user.
void check_files(const DataRequest& request) {
  const bool named = is_named_dataset(request.dataset);
  const bool matrix = !named && is_matrix(request.dataset);
  if (!matrix && !(request.labels_path.empty() && request.test_labels_path.empty()))
    throw InputError("--labels and --test-labels: expected with a .npy file only, found with " +
                     request.dataset);
  if (!matrix && request.arrays != ArrayOptions{})
    throw InputError(
        "--input-shape, --channels-last, --arrays, --test-arrays and --target-bounds: expected "
        "with a .npy or .npz file only, found with " +
        request.dataset);
  if (request.malformed != Malformed::refuse && (named || is_folder(request.dataset)))
    throw InputError(
        "--malformed missing: expected with a table or a .npy or .npz file given by its path only, "
        "found with " +
        request.dataset);
}

DataSplit load(const DataRequest& request) {
  check_classes(request);
  check_files(request);
  if (is_named_dataset(request.dataset)) {
    check_in_memory(request);
    DataSplit split = load_named(request);
    check_texts(request, split);
    return split;
  }
  std::error_code ignored;
  if (request.given == nullptr && !fs::exists(request.dataset, ignored)) {
    std::vector<std::string> names;
    std::string list;
    for (const NamedDataset& named : named_datasets()) {
      names.push_back(named.name);
      list.append(named.name).append(", ");
    }
    const auto near = near_names(fs::path(request.dataset).filename().string(), names, kSynonyms);
    bad_input(
        "dataset " + shown(request.dataset, 200), "",
        list + "or the path of a folder, a table, or a .npy or .npz file",
        "no such file or folder" + (near.empty() ? "" : "; the nearest is '" + near.front() + "'"));
  }
  DataSplit split = is_folder(request.dataset)   ? load_folder(request)
                    : is_matrix(request.dataset) ? load_matrix(request)
                                                 : load_table_file(request);
  check_texts(request, split);
  if (split.name.empty()) {
    split.name = set_name_of(request.dataset);
    // The user's own file or folder has the name of a published data set, but perhaps other rows.
    // The name "own ..." shows that the data set is not the published one.
    if (is_named_dataset(split.name)) split.name.insert(0, "own ");
  }
  split.size_is_public = request.size_is_public;
  split.test_is_public = request.test_is_public;
  split.test_given = is_folder(request.dataset) || !request.test_path.empty();
  check_rows(request, split);
  return split;
}

/// Returns the result of load(). If memory does not suffice, throws Error with the data set's name.
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

bool is_table_path(const std::string& dataset) {
  return !is_named_dataset(dataset) && !is_folder(dataset) && !is_matrix(dataset);
}

DataSplit load_data(const DataRequest& request) {
  return with_memory(request, [&] { return load(request); });
}

TestData load_test_data(const DataRequest& request) {
  return with_memory(request, [&]() -> TestData {
    std::error_code ignored;
    const bool table = request.given != nullptr ||
                       (!is_named_dataset(request.dataset) && !is_folder(request.dataset) &&
                        fs::exists(request.dataset, ignored));
    if (!table) {
      DataSplit split = load(request);
      return {split.name, std::move(split.test)};
    }
    check_classes(request);
    check_files(request);
    TestData rows =
        is_matrix(request.dataset) ? load_matrix_rows(request) : load_table_rows(request);
    if (rows.name.empty()) rows.name = set_name_of(request.dataset);
    return rows;
  });
}

}  // namespace cudp
