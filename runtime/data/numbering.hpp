#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/step/sample.hpp"
#include "runtime/data/dataset.hpp"

namespace cudp {

/// Maps between an example's index in a Dataset and its sampling index, by which batches are drawn.
/// They are the same unless rows were held out; the sampling index is then the row's index among
/// all used rows of the file (Dataset::numbers), so that batches do not depend on which rows were
/// held out. For one rank's range of a data set, sampling indices are those of the whole set.
class Numbering {
 public:
  explicit Numbering(const Dataset& data)
      : numbers_(data.numbers), begin_(data.first), end_(data.first + data.size()) {
    // The range of a rank without examples begins where the data set ends, within a tile.
    if (data.size() == 0) begin_ = end_ = 0;
    if (numbers_.empty()) return;
    begin_ = numbers_.front() / kSampleTile * kSampleTile;
    end_ = static_cast<std::size_t>(numbers_.back()) + 1;
    index_.assign(end_ - begin_, kHeldOut);
    for (std::size_t i = 0; i < numbers_.size(); ++i)
      index_[numbers_[i] - begin_] = static_cast<std::uint32_t>(i);
  }

  /// begin(): smallest sampling index of an example, rounded down to a multiple of kSampleTile.
  /// end(): largest sampling index + 1.
  std::size_t begin() const { return begin_; }
  std::size_t end() const { return end_; }
  std::size_t count() const { return end_ - begin_; }
  bool are_indices() const { return index_.empty(); }
  /// Index of the example of each number from begin() on, or kHeldOut; empty if are_indices().
  std::span<const std::uint32_t> index() const { return index_; }

  /// Converts sampling indices, given relative to begin(), to indices of examples, in place. Input
  /// and output ascend. Held-out rows are removed. Returns how many indices are left.
  std::size_t to_indices(std::span<std::uint32_t> drawn) const {
    if (index_.empty()) return drawn.size();
    std::size_t left = 0;
    for (const std::uint32_t number : drawn)
      if (index_[number] != kHeldOut) drawn[left++] = index_[number];
    return left;
  }
  std::vector<std::uint32_t> numbers_of(std::span<const std::uint32_t> indices) const {
    std::vector<std::uint32_t> numbers(indices.begin(), indices.end());
    for (std::uint32_t& i : numbers)
      i = index_.empty() ? i + static_cast<std::uint32_t>(begin_) : numbers_[i];
    return numbers;
  }
  /// Returns an array with one entry per sampling index from begin() on, [count()]: the value of
  /// the example with this index, or 0 for a held-out row. values: one per example.
  std::vector<float> by_number(std::span<const float> values) const {
    std::vector<float> all(count(), 0.0f);
    for (std::size_t i = 0; i < values.size(); ++i)
      all[index_.empty() ? i : numbers_[i] - begin_] = values[i];
    return all;
  }

 private:
  std::vector<std::uint32_t> numbers_;  // Dataset::numbers
  std::size_t begin_;
  std::size_t end_;
  // Index of the example with sampling index begin() + i; kHeldOut: held-out row. Empty: always i.
  std::vector<std::uint32_t> index_;
};

}  // namespace cudp
