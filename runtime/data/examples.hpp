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

/// Number of elements that one example has in each array of a Dataset.
struct ExampleWidths {
  std::size_t numbers = 0;  ///< elements in bytes, floats and tokens
  std::size_t coded = 0;    ///< size of a coded row [bytes]
};
ExampleWidths widths_of(const Dataset& data);
/// Returns the size of one example's features [bytes].
std::size_t feature_bytes(const Dataset& data);

/// Calls visit(array of `to`, same array of `from`, elements per example) for each array that
/// `from` has. Requires that both have features of the same form and that `to` owns its features.
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

/// Copies features that the calling program owns into the data set, so that they can be changed.
void own_features(Dataset& data);
/// Returns a data set without examples that has the shape, classes and kind of features of `data`.
Dataset empty_like(const Dataset& data);
/// Removes all examples, and keeps the allocated memory for reuse.
void clear_examples(Dataset& data);
/// Appends all examples of `from` to `to`. Requires that both have features of the same form.
void append_examples(const Dataset& from, Dataset& to);
/// Appends the examples `range` of `from` to `to`. Requires that both have features of the same
/// form.
void append_examples(const Dataset& from, ExampleRange range, Dataset& to);
/// Appends one example of `from` to `to`. Requires that both have features of the same form.
void append_example(const Dataset& from, std::size_t example, Dataset& to);
/// Returns the examples with the indices `which`, in that order.
Dataset select_examples(const Dataset& data, std::span<const std::size_t> which);
/// Appends `count` examples whose features, label and target are 0.
void append_blanks(Dataset& data, std::size_t count);

/// For a data set without examples: makes it store its arrays targets, numbers and first_rows in
/// files on the disk of `folder` once they are large.
void keep_arrays_in(const std::filesystem::path& folder, Dataset& data);

/// Appends the features of a data set, [size, feature_bytes()], to a file, and removes them from
/// the data set. Requires that the data set owns them.
void move_features(Dataset& data, RowFileWriter& to);

/// Copies the features of the examples `which` to `to` [which.size(), feature_bytes()], aligned to
/// 4 bytes. Throws InputError if they are in a file that cannot be read, or in which a record is
/// not valid. Thread-safe.
void copy_features(const Dataset& from, std::span<const std::uint32_t> which, std::uint8_t* to);

/// Throws InputError unless features that were copied from the file of `data`, [count,
/// feature_bytes()], are valid records.
void check_features(const Dataset& data, const std::uint8_t* features, std::size_t count);

/// Copies, in memory, of examples whose features are in a file. Each thread has an object of its
/// own: it fetches the examples that it needs next, computes everything from these copies, and then
/// fetches others.
class FetchedExamples {
 public:
  /// Copies the listed examples of `from`. The result has them in this order and keeps
  /// Dataset::first, but has no `numbers` and `first_rows`. It is valid until the next call. Throws
  /// InputError if the file cannot be read, or a record in it is not valid.
  const Dataset& fetch(const Dataset& from, std::span<const std::uint32_t> which);
  /// Like fetch(), but without the features: the caller must copy those of the listed examples to
  /// the returned address, and then call check_features().
  std::uint8_t* fetch_all_but_features(const Dataset& from, std::span<const std::uint32_t> which);
  const Dataset& copies() const { return copies_; }
  /// Returns the indices of all copies: 0, 1, 2, ...
  std::span<const std::uint32_t> indices() const { return {indices_.data(), copies_.size()}; }

 private:
  Dataset copies_;
  std::vector<std::uint32_t> indices_;
};

/// Reads the features of a coded or dense float example into x [shape.size()]. Throws Error for
/// other kinds.
void read_floats(const Dataset& data, std::size_t example, std::span<float> x);
/// Reads the features of examples [first, first + count) into x [count, shape.size()]. Throws Error
/// for kinds other than coded or dense floats.
void read_floats(const Dataset& data, std::size_t first, std::size_t count, std::span<float> x);
/// Converts coded rows to dense floats; returns data of other forms unchanged.
Dataset dense(Dataset data);

/// Makes a data set of coded rows, for tests and benchmarks. n: size of `labels`. numbers: [n,
/// layout's number of numbers], values of numeric columns. codes: [n, layout.codes], feature
/// indices of one-hot columns. Throws Error if a value does not fit the layout, or if a row has a
/// code twice or one that is the feature of a number.
Dataset coded_dataset(RowLayout layout, std::span<const float> numbers,
                      std::span<const std::uint32_t> codes, std::vector<std::uint8_t> labels,
                      int classes);

}  // namespace cudp
