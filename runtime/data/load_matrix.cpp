#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

#include "runtime/base/busy.hpp"
#include "runtime/base/error.hpp"
#include "runtime/data/bytes.hpp"
#include "runtime/data/folders.hpp"
#include "runtime/data/holdout.hpp"
#include "runtime/data/matrix_reader.hpp"
#include "runtime/data/range.hpp"
#include "runtime/data/sources.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;

/// Makes a KeptRange for a share of `rows` rows, with as much memory reserved as the reader allows.
KeptRange kept_rows(const MatrixReader& reader, Share share, std::uint64_t rows) {
  Dataset empty = reader.empty();
  const std::uint64_t reserved =
      std::min<std::uint64_t>(reader.reservable(), share.of(rows).size());
  const std::uint64_t numbers = reserved * static_cast<std::uint64_t>(empty.shape.size());
  if (empty.is_bytes())
    empty.bytes.reserve(numbers);
  else
    empty.floats.reserve(numbers);
  empty.labels.reserve(reserved);
  return {std::move(empty), share, rows};
}

/// Names the file that is read next, for a terminal.
void show(const MatrixFiles& files) {
  if (files.progress != nullptr)
    files.progress->next("reading " + shown(fs::path(files.name()).filename().string()));
}

/// Checks the rows of arrays, and returns a data set that uses their memory.
Dataset borrow_rows(MatrixReader& reader, std::shared_ptr<const LentFeatures> lent) {
  Dataset rows = reader.empty();
  rows.labels.reserve(reader.rows());
  TableBlock block;
  while (reader.next(block))
    rows.labels.insert(rows.labels.end(), block.examples.labels.begin(),
                       block.examples.labels.end());
  rows.lent = std::move(lent);
  return rows;
}

/// Reads a share's range of the rows; rows of other shares are checked too.
Dataset read_rows(const MatrixFiles& files, Share share = {}) {
  show(files);
  MatrixReader reader(files);
  if (auto lent = reader.lent(); lent != nullptr && share.is_all())
    return borrow_rows(reader, std::move(lent));
  KeptRange kept = kept_rows(reader, share, reader.rows());
  TableBlock block;
  while (reader.next(block)) kept.take(block.examples);
  return kept.finish(files.name());
}

/// Reads a share's range of the rows in two parts, training and held out.
HeldOut read_held_out(const MatrixFiles& files, HoldOutCoins coins, Share share) {
  show(files);
  MatrixReader reader(files);
  std::uint64_t held = 0;
  for (std::uint64_t row = 0; row < reader.rows(); ++row) held += coins.holds_out(row) ? 1 : 0;
  HoldOutSplitter splitter(std::move(coins), kept_rows(reader, share, reader.rows() - held),
                           kept_rows(reader, share, held));
  TableBlock block;
  while (reader.next(block)) splitter.take(block.examples);
  return splitter.finish(files.name());
}

/// arrays: those that are read in place of the files; null: none are.
MatrixFiles files_of(const DataRequest& request, const std::string& features,
                     const std::string& labels, const LabelledArrays* arrays) {
  if (request.classes == 0)
    bad_input(features, "",
              "--classes N, the number of classes, which is never read from labels since they are "
              "private",
              "none");
  if (!request.schema.empty())
    bad_input(features, "", "no --schema, which only tables have", shown(request.schema));
  return {.features = features,
          .labels = labels,
          .arrays = arrays,
          .classes = request.classes,
          .malformed = request.malformed,
          .progress = request.progress};
}

const LabelledArrays* train_arrays(const DataRequest& request) {
  return request.arrays != nullptr ? &request.arrays->train : nullptr;
}
const LabelledArrays* test_arrays(const DataRequest& request) {
  return request.arrays != nullptr && request.arrays->test ? &*request.arrays->test : nullptr;
}

/// Throws InputError if test rows are in the memory of training examples.
void check_arrays_apart(const LabelledArrays& train, const LabelledArrays& test) {
  for (const GivenArray* const mine : {&test.x, test.y ? &*test.y : nullptr})
    for (const GivenArray* const other : {&train.x, train.y ? &*train.y : nullptr})
      if (mine != nullptr && other != nullptr && overlap(*mine, *other))
        bad_input(mine->name, "", "test rows in memory of their own, as its copy() has",
                  "memory of the training rows, " + other->name);
}

/// Throws InputError if test rows or their labels are in a file of training examples.
void check_matrices_apart(const DataRequest& request) {
  if (test_arrays(request) != nullptr)
    return check_arrays_apart(*train_arrays(request), *test_arrays(request));
  std::vector<fs::path> train{request.dataset};
  if (!request.labels_path.empty()) train.emplace_back(request.labels_path);
  check_apart(request.test_path, train);
  if (!request.test_labels_path.empty()) check_apart(request.test_labels_path, train);
}

/// Throws InputError unless test examples have the shape of the training examples, and features of
/// their kind.
void check_alike(const DataRequest& request, const DataSplit& split) {
  const auto text = [](const Dataset& set, bool whole) {
    const Shape& s = set.shape;
    std::string sides;
    for (const int side : {s.channels, s.height, s.width})
      sides += (sides.empty() ? "" : "x") + std::to_string(side);
    return whole ? sides + " features that are " + (set.is_bytes() ? "bytes" : "floating-point")
                 : std::to_string(s.size());
  };
  const Dataset &train = split.train, &test = split.test;
  if (test.shape == train.shape && test.is_bytes() == train.is_bytes()) return;
  const bool whole = test.shape.size() == train.shape.size();
  bad_input(request.test_path, "",
            text(train, whole) + (whole ? "" : " features") + ", as " + request.dataset + " has",
            text(test, whole));
}

}  // namespace

bool is_matrix(const fs::path& path) {
  fs::path name = path.filename();
  if (name.extension() == ".gz" || name.extension() == ".xz") name.replace_extension();
  return name.extension() == ".npy" || name.extension() == ".npz";
}

DataSplit load_matrix(const DataRequest& request) {
  const MatrixFiles train =
      files_of(request, request.dataset, request.labels_path, train_arrays(request));
  DataSplit split;
  if (request.test_path.empty()) {
    if (!request.test_labels_path.empty())
      throw InputError("--test-labels: expected with --test-data only, found " +
                       shown(request.test_labels_path, 200));
    split.held_out = request.holdout.has_value();
    if (split.held_out) {
      HeldOut parts = read_held_out(train, *request.holdout, request.share);
      split.train = std::move(parts.train);
      split.test = std::move(parts.held);
    } else {
      split.train = read_rows(train, request.share);
      split.test.shape = split.train.shape;
      split.test.classes = split.train.classes;
    }
  } else {
    check_matrices_apart(request);
    const MatrixFiles test =
        files_of(request, request.test_path, request.test_labels_path, test_arrays(request));
    MatrixReader first(test);  // finds a mistake before everything else is read
    split.train = read_rows(train, request.share);
    split.test = read_rows(test, request.share);
    check_alike(request, split);
  }
  // A program that uses cudp may have scaled the rows by bounds of theirs, or counted classes.
  if (request.accept_private_bounds)
    split.unsafe.emplace_back("bounds, categories or classes were read from private rows");
  split.assumptions.emplace_back(
      request.malformed == Malformed::refuse
          ? "every feature is finite and every label a class: a training on a file with another is "
            "refused, and that is not counted"
          : "a row of the matrix is one example");
  return split;
}

TestData load_matrix_rows(const DataRequest& request) {
  return {"", read_rows(
                  files_of(request, request.dataset, request.labels_path, train_arrays(request)))};
}

}  // namespace cudp
