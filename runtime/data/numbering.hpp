#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/step/sample.hpp"
#include "runtime/data/dataset.hpp"

namespace cudp {

/// Maps between an example's index in a Dataset and its sampling index, the index with which
/// batches are drawn. The two are the same unless rows were held out for testing. Then the sampling
/// index is the row's index among all rows of the file that are used, including held-out ones, so
/// that drawn batches do not depend on which rows were held out. For one rank's range of a data
/// set, sampling indices are those of the whole set.
class Numbering {
 public:
  explicit Numbering(const Dataset& data);

  /// Returns the smallest sampling index of an example in the data set, rounded down to a multiple
  /// of 512, the number of indices that the sampler draws at once.
  std::size_t begin() const { return begin_; }
  /// Returns the largest sampling index of an example in the data set, plus 1.
  std::size_t end() const { return end_; }
  std::size_t count() const { return end_ - begin_; }
  bool are_indices() const { return trained_.empty(); }
  /// Returns, for each sampling index from begin() to end() - 1, the index of the example, or
  /// kHeldOut if the row is held out. Empty if sampling indices equal the examples' indices
  /// (are_indices()).
  std::vector<std::uint32_t> index() const;

  /// Converts the sampling indices `drawn`, given relative to begin(), to indices of examples, in
  /// place. Input and output are in ascending order. Indices of held-out rows are removed; returns
  /// how many indices are left.
  std::size_t to_indices(std::span<std::uint32_t> drawn) const;
  /// Returns the sampling indices of examples. indices: the examples' indices in the data set.
  std::vector<std::uint32_t> numbers_of(std::span<const std::uint32_t> indices) const;
  /// Returns the values ordered by sampling index, [count()]: element i is the value of the row
  /// with sampling index begin() + i, or 0 if that row is held out. values: one per example.
  std::vector<float> by_number(std::span<const float> values) const;

 private:
  std::uint32_t index_of(std::size_t number) const;
  std::size_t number_of(std::uint32_t index) const;

  std::size_t begin_;
  std::size_t end_;
  // One bit per sampling index: bit i is set if the row with the sampling index begin() + i is an
  // example, i.e. not held out. Empty if no row is held out.
  std::vector<std::uint64_t> trained_;
  // Number of examples before each group of kGroup words of trained_. Both arrays take less than
  // two bits a row.
  std::vector<std::uint32_t> before_;
};

}  // namespace cudp
