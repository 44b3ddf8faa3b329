#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "runtime/base/busy.hpp"
#include "runtime/base/error.hpp"
#include "runtime/data/array_options.hpp"
#include "runtime/data/bytes.hpp"
#include "runtime/data/examples.hpp"
#include "runtime/data/folders.hpp"
#include "runtime/data/holdout.hpp"
#include "runtime/data/matrix_reader.hpp"
#include "runtime/data/range.hpp"
#include "runtime/data/sources.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;

/// Makes an object that collects one rank's share of `rows` rows, in memory or in a file, as
/// files.storage states. Memory is reserved for at most reader.reservable() rows.
KeptRange kept_rows(const MatrixFiles& files, const MatrixReader& reader, Share share,
                    std::uint64_t rows) {
  Dataset empty = reader.empty();
  if (const std::size_t row_bytes = feature_bytes(empty);
      files.storage.in_file(share.of(rows).size() * row_bytes))
    return {std::move(empty), share, rows,
            RowFileWriter(files.storage.folder, files.name(), row_bytes)};
  const std::uint64_t reserved =
      std::min<std::uint64_t>(reader.reservable(), share.of(rows).size());
  const std::uint64_t numbers = reserved * static_cast<std::uint64_t>(empty.shape.size());
  if (empty.is_bytes())
    empty.bytes.reserve(numbers);
  else
    empty.floats.reserve(numbers);
  empty.labels.reserve(reserved);
  if (empty.has_targets()) empty.targets.reserve(reserved);
  return {std::move(empty), share, rows};
}

/// Shows on the terminal which file is being read.
void show(const MatrixFiles& files) {
  if (files.progress != nullptr)
    files.progress->next("reading " + shown(fs::path(files.name()).filename().string()));
}

/// Checks all rows of arrays whose features will be used without a copy, from the memory or the
/// file where they are. Appends the labels and targets to `rows` and returns `rows`.
Dataset check_rows(MatrixReader& reader, Dataset rows) {
  rows.labels.reserve(reader.rows());
  if (rows.has_targets()) rows.targets.reserve(reader.rows());
  TableBlock block;
  while (reader.next(block)) {
    const Dataset& read = block.examples;
    rows.labels.insert(rows.labels.end(), read.labels.begin(), read.labels.end());
    rows.targets.insert(rows.targets.end(), read.targets.begin(), read.targets.end());
  }
  return rows;
}

/// Reads the rows that belong to one rank (process) into a data set. Checks the rows of other
/// ranks, too.
Dataset read_rows(const MatrixFiles& files, Share share = {}) {
  show(files);
  MatrixReader reader(files);
  if (auto borrowed = reader.borrowed(); borrowed != nullptr && share.is_all()) {
    Dataset rows = check_rows(reader, reader.empty());
    rows.borrowed = std::move(borrowed);
    return rows;
  }
  if (share.is_all() && files.storage.in_file(reader.rows() * feature_bytes(reader.empty())))
    if (auto in_file = reader.file_rows(); in_file != nullptr) {
      Dataset rows = reader.empty();
      keep_arrays_in(files.storage.folder, rows);
      rows = check_rows(reader, std::move(rows));
      rows.rows = std::move(in_file);
      return rows;
    }
  KeptRange kept = kept_rows(files, reader, share, reader.rows());
  TableBlock block;
  while (reader.next(block)) kept.take(block.examples);
  return kept.finish(files.name());
}

/// Reads the rows that belong to one rank (process), divided into training rows and held-out rows
/// by `draws`.
HeldOut read_held_out(const MatrixFiles& files, HoldOutDraws draws, Share share) {
  show(files);
  MatrixReader reader(files);
  std::uint64_t held = 0;
  for (std::uint64_t row = 0; row < reader.rows(); ++row) held += draws.holds_out(row) ? 1 : 0;
  HoldOutSplitter splitter(std::move(draws), kept_rows(files, reader, share, reader.rows() - held),
                           kept_rows(files, reader, share, held));
  TableBlock block;
  while (reader.next(block)) splitter.take(block.examples);
  return splitter.finish(files.name());
}

/// Origin of the training examples, or of the test examples: the paths of a file of features and of
/// a file of labels, the names of the arrays in a .npz file, or arrays in memory.
struct ArrayFiles {
  std::string features;
  std::string labels;
  ArrayNames names;
  const LabelledArrays* given = nullptr;  ///< arrays to read instead of files; null: none
};

ArrayFiles train_files(const DataRequest& request) {
  return {request.dataset, request.labels_path,
          parse_array_names(request.arrays.arrays, "--arrays"),
          request.given != nullptr ? &request.given->train : nullptr};
}

ArrayFiles test_files(const DataRequest& request) {
  const ArrayOptions& a = request.arrays;
  return {request.test_path, request.test_labels_path,
          a.test_arrays.empty() ? parse_array_names(a.arrays, "--arrays")
                                : parse_array_names(a.test_arrays, "--test-arrays"),
          request.given != nullptr && request.given->test ? &*request.given->test : nullptr};
}

MatrixFiles files_of(const DataRequest& request, const ArrayFiles& files) {
  const std::optional<TargetBounds> target =
      parse_target_bounds(request.arrays.target_bounds, "--target-bounds");
  if (target && request.classes != 0)
    throw InputError(
        "--target-bounds: expected no --classes beside it, since a number that is "
        "predicted has no classes, found " +
        std::to_string(request.classes));
  if (request.classes == 0 && !target)
    bad_input(files.features, "",
              "--classes N, the number of classes, which is never read from labels since they are "
              "private (or --target-bounds LOW,HIGH for a number to predict)",
              "none");
  if (!request.schema.empty())
    bad_input(files.features, "", "no --schema, which only tables have", shown(request.schema));
  return {.features = files.features,
          .labels = files.labels,
          .given = files.given,
          .classes = target ? 1 : request.classes,
          .malformed = request.malformed,
          .form = {.shape = parse_input_shape(request.arrays.input_shape, "--input-shape"),
                   .channels_last = request.arrays.channels_last},
          .names = files.names,
          .target = target,
          .storage = request.storage,
          .progress = request.progress};
}

/// Returns whether the array `name` of a .npz file is the one to read. stated: the name that the
/// user stated. If it is empty, the array is the one with the usual name: x or X for features, y or
/// Y for labels. usual: "x" or "y".
bool may_be(const std::string& stated, const std::string& usual, const std::string& name) {
  if (!stated.empty()) return stated == name;
  return name == usual || (name.size() == 1 && std::tolower(name[0]) == usual[0]);
}

/// Returns whether training and test examples are in different arrays of one .npz file.
bool are_other_arrays(const ArrayFiles& train, const ArrayFiles& test) {
  std::error_code ignored;
  return fs::path(test.features).extension() == ".npz" &&
         fs::equivalent(test.features, train.features, ignored) && !test.names.labels.empty() &&
         !may_be(train.names.features, "x", test.names.features) &&
         !may_be(train.names.labels, "y", test.names.labels);
}

/// Throws InputError if test rows overlap the training examples in memory.
void check_given_apart(const LabelledArrays& train, const LabelledArrays& test) {
  for (const GivenArray* const mine : {&test.x, test.y ? &*test.y : nullptr})
    for (const GivenArray* const other : {&train.x, train.y ? &*train.y : nullptr})
      if (mine != nullptr && other != nullptr && overlap(*mine, *other))
        bad_input(mine->name, "", "test rows in memory of their own, as its copy() has",
                  "memory of the training rows, " + other->name);
}

/// Throws InputError if test rows or their labels are in the training file. They may be in the same
/// .npz file as the training rows, if they are in arrays of their own.
void check_matrices_apart(const ArrayFiles& train, const ArrayFiles& test) {
  if (train.given != nullptr && test.given != nullptr)
    return check_given_apart(*train.given, *test.given);
  if (are_other_arrays(train, test)) return;
  std::error_code ignored;
  if (fs::path(test.features).extension() == ".npz" &&
      fs::equivalent(test.features, train.features, ignored))
    bad_input(test.features, "",
              "test rows in a file of their own, or in arrays of their own (--test-arrays "
              "NAME,NAME)",
              "the arrays of the training rows");
  std::vector<fs::path> files{train.features};
  if (!train.labels.empty()) files.emplace_back(train.labels);
  check_apart(test.features, files);
  if (!test.labels.empty()) check_apart(test.labels, files);
}

/// Throws InputError unless the test examples have the same shape and number type as the training
/// examples.
void check_alike(const DataRequest& request, const Dataset& train, const Dataset& test) {
  const auto numbers = [](const Dataset& d) {
    return d.is_bytes() ? "numbers of type uint8" : "floating-point numbers";
  };
  const auto shape = [](const Shape& s) {
    if (s.height == 1 && s.width == 1) return std::to_string(s.channels) + " features";
    return "examples of " + std::to_string(s.channels) + "x" + std::to_string(s.height) + "x" +
           std::to_string(s.width);
  };
  if (test.is_bytes() != train.is_bytes())
    bad_input(request.test_path, "",
              std::string(numbers(train)) + ", as " + request.dataset + " has", numbers(test));
  if (test.shape != train.shape)
    bad_input(request.test_path, "", shape(train.shape) + ", as " + request.dataset + " has",
              test.shape.height == 1 && test.shape.width == 1 && train.shape.height == 1 &&
                      train.shape.width == 1
                  ? std::to_string(test.shape.channels)
                  : shape(test.shape));
}

/// Returns the assumptions about the files on which the privacy guarantee rests, as text for the
/// certificate. The verifier knows these texts (privacy/verify/release_reasons.cpp).
std::string assumption_of(const DataRequest& request, const Dataset& train) {
  if (request.malformed == Malformed::missing) return "a row of the matrix is one example";
  if (train.is_bytes() && !train.has_targets()) return kLabelsAreClasses;
  const std::string what = train.is_bytes() ? "every target is finite"
                           : train.has_targets()
                               ? "every feature and every target is finite"
                               : "every feature is finite and every label a class";
  return what + ": a training on a file with another is refused, and that is not counted";
}

}  // namespace

bool is_matrix(const fs::path& path) {
  fs::path name = path.filename();
  if (name.extension() == ".gz" || name.extension() == ".xz") name.replace_extension();
  return name.extension() == ".npy" || name.extension() == ".npz";
}

DataSplit load_matrix(const DataRequest& request) {
  const ArrayFiles own = train_files(request);
  const MatrixFiles train = files_of(request, own);
  DataSplit split;
  if (request.test_path.empty()) {
    if (!request.test_labels_path.empty() || !request.arrays.test_arrays.empty())
      throw InputError(request.test_labels_path.empty()
                           ? "--test-arrays: expected with --test-data only, found " +
                                 shown(request.arrays.test_arrays, 200)
                           : "--test-labels: expected with --test-data only, found " +
                                 shown(request.test_labels_path, 200));
    split.held_out = request.holdout.has_value();
    if (split.held_out) {
      HeldOut parts = read_held_out(train, *request.holdout, request.share);
      split.train = std::move(parts.train);
      split.test = std::move(parts.held);
    } else {
      split.train = read_rows(train, request.share);
      split.test = empty_like(split.train);
    }
  } else {
    const ArrayFiles other = test_files(request);
    check_matrices_apart(own, other);
    const MatrixFiles test = files_of(request, other);
    // Reads the header now, to report a mistake before the training file is read.
    MatrixReader first(test);
    check_alike(request, MatrixReader(train).empty(), first.empty());
    split.train = read_rows(train, request.share);
    split.test = read_rows(test, request.share);
  }
  split.assumptions.push_back(assumption_of(request, split.train));
  // The option declares that bounds, categories or classes come from private rows. Arrays have no
  // schema to complete; the calling program may have scaled the features by bounds of the rows, or
  // counted the classes.
  if (request.accept_private_bounds)
    split.unsafe.emplace_back("bounds, categories or classes were read from private rows");
  return split;
}

TestData load_matrix_rows(const DataRequest& request) {
  return {"", read_rows(files_of(request, train_files(request)))};
}

}  // namespace cudp
