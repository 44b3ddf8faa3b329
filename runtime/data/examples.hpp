#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/data/share.hpp"

namespace cudp {

/// Number of array elements per example in a Dataset: elements of the arrays `bytes`, `floats` and
/// `tokens`, and bytes of a coded table row.
struct ExampleWidths {
  std::size_t numbers = 0;  ///< elements in bytes, floats and tokens
  std::size_t coded = 0;    ///< size of a coded row [bytes]
};
ExampleWidths widths_of(const Dataset& data);
/// Returns the size of one example's features [bytes].
std::size_t feature_bytes(const Dataset& data);

/// Calls visit(array of `to`, the same array of `from`, elements per example) for each array of a
/// Dataset that `from` has (features, labels, targets, ...). Requires that `to` and `from` have the
/// same kind of features (bytes, floats, coded rows or word ids) and that `to` owns its features.
/// To, From: Dataset types. Visit: type of the function visit().
template <class To, class From, class Visit>
void for_each_array(To& to, const From& from, const Visit& visit) {
  ensure(from.rows == nullptr, "the features are in a file");
  const ExampleWidths widths = widths_of(from);
  if (const auto bytes = from.byte_values(); !bytes.empty()) visit(to.bytes, bytes, widths.numbers);
  if (const auto floats = from.float_values(); !floats.empty())
    visit(to.floats, floats, widths.numbers);
  if (!from.coded.empty()) visit(to.coded, from.coded, widths.coded);
  if (!from.tokens.empty()) visit(to.tokens, from.tokens, widths.numbers);
  if (!from.lengths.empty()) visit(to.lengths, from.lengths, std::size_t{1});
  visit(to.labels, from.labels, std::size_t{1});
  if (!from.targets.empty()) visit(to.targets, from.targets, std::size_t{1});
  if (!from.numbers.empty()) visit(to.numbers, from.numbers, std::size_t{1});
  if (!from.first_rows.empty()) visit(to.first_rows, from.first_rows, std::size_t{1});
}

/// Copies features that the calling program owns into arrays of the data set, so that they can be
/// changed. Does nothing if the data set owns its features.
void own_features(Dataset& data);
/// Returns a data set without examples that has the shape, classes and kind of features of `data`.
Dataset empty_like(const Dataset& data);
/// Removes all examples from the data set, and keeps the allocated memory for reuse.
void clear_examples(Dataset& data);
/// Appends all examples of `from` to `to`. Requires that both have the same kind of features
/// (bytes, floats, coded rows or word ids).
void append_examples(const Dataset& from, Dataset& to);
/// Appends the examples of `from` whose indices are in `range` to `to`. Requires that both have the
/// same kind of features (bytes, floats, coded rows or word ids).
void append_examples(const Dataset& from, ExampleRange range, Dataset& to);
/// Appends one example of `from`, the one with the index `example`, to `to`. Requires that both
/// have the same kind of features (bytes, floats, coded rows or word ids).
void append_example(const Dataset& from, std::size_t example, Dataset& to);
/// Returns a data set with copies of the examples with the indices `which`, in that order.
Dataset select_examples(const Dataset& data, std::span<const std::size_t> which);
/// Appends `count` examples whose features, label and target are 0.
void append_blanks(Dataset& data, std::size_t count);

/// Makes a data set store large arrays `targets`, `numbers` and `first_rows` in unnamed files on
/// the disk of `folder` instead of in memory. Requires that the data set has no examples yet.
void keep_arrays_in(const std::filesystem::path& folder, Dataset& data);

/// Appends the features of all examples of a data set to a file, feature_bytes(data) bytes per
/// example, and removes them from the data set. Requires that the data set owns its features.
void move_features(Dataset& data, RowFileWriter& to);

/// Copies the features of the examples with the indices `which` to `to` [which.size(),
/// feature_bytes(from)], an address that must be aligned to 4 bytes. Throws InputError if the
/// features are in a file that cannot be read, or in which one of these records is not valid.
/// Thread-safe.
void copy_features(const Dataset& from, std::span<const std::uint32_t> which, std::uint8_t* to);

/// Throws InputError if a record that was copied from the file of `data` is not valid, because
/// another program may have changed the file. features: the copies, [count, feature_bytes(data)].
void check_features(const Dataset& data, const std::uint8_t* features, std::size_t count);

/// Copies, in memory, of some examples of a data set whose features are in a file. Each thread has
/// an object of its own: it fetches the examples that it needs next, computes everything from these
/// copies, and then fetches other examples.
class FetchedExamples {
 public:
  /// Copies the examples of `from` with the indices `which`. The result has them in the order of
  /// `which`, and the same Dataset::first as `from`, but empty arrays Dataset::numbers and
  /// Dataset::first_rows. It is valid until the next call. Throws InputError if the file cannot be
  /// read, or a record in it is not valid.
  const Dataset& fetch(const Dataset& from, std::span<const std::uint32_t> which);
  /// Copies the examples of `from` with the indices `which` in the same way as fetch(), but without
  /// their features: the caller must copy these, in the same order, to the returned address, and
  /// then call check_features().
  std::uint8_t* fetch_all_but_features(const Dataset& from, std::span<const std::uint32_t> which);
  const Dataset& copies() const { return copies_; }
  /// Returns the indices of all copied examples in copies(): 0, 1, 2, ...
  std::span<const std::uint32_t> indices() const { return {indices_.data(), copies_.size()}; }

 private:
  Dataset copies_;
  std::vector<std::uint32_t> indices_;
};

/// Writes the features of an example, a coded table row or dense floats, to x [data.shape.size()]
/// as floats. Throws Error if the data set's features are of another kind (bytes or texts) or in a
/// file.
void read_floats(const Dataset& data, std::size_t example, std::span<float> x);
/// Writes the features of examples [first, first + count), coded table rows or dense floats, to x
/// [count, data.shape.size()] as floats. Throws Error if the data set's features are of another
/// kind (bytes or texts) or in a file.
void read_floats(const Dataset& data, std::size_t first, std::size_t count, std::span<float> x);
/// Converts a data set of coded table rows to one of dense floats; returns a data set with other
/// features unchanged.
Dataset dense(Dataset data);

/// Makes a data set of coded table rows (a compact form of sparse rows), for tests and benchmarks.
/// numbers: values of numeric columns, [labels.size(), layout.numbers()]. codes: indices of the
/// one-hot features that are 1, [labels.size(), layout.codes]. Throws Error if an array does not
/// fit the layout, if a row has a code twice, or if a code is the index of a numeric feature.
Dataset coded_dataset(RowLayout layout, std::span<const float> numbers,
                      std::span<const std::uint32_t> codes, std::vector<std::uint8_t> labels,
                      int classes);

}  // namespace cudp
