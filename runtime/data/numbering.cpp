#include "runtime/data/numbering.hpp"

#include <algorithm>
#include <bit>

namespace cudp {
namespace {

constexpr std::size_t kWord = 64;  // bits
constexpr std::size_t kGroup = 8;  // words

}  // namespace

Numbering::Numbering(const Dataset& data) : begin_(data.first), end_(data.first + data.size()) {
  // The range of a rank without examples begins at the end of the data set, which may not be a
  // multiple of kSampleTile as begin() must be.
  if (data.size() == 0) begin_ = end_ = 0;
  if (data.numbers.empty()) return;
  begin_ = data.numbers.front() / kSampleTile * kSampleTile;
  end_ = static_cast<std::size_t>(data.numbers.back()) + 1;
  trained_.resize((count() + kWord - 1) / kWord);
  for (const std::uint32_t number : data.numbers)
    trained_[(number - begin_) / kWord] |= std::uint64_t{1} << (number - begin_) % kWord;
  std::uint32_t examples = 0;
  for (std::size_t w = 0; w < trained_.size(); ++w) {
    if (w % kGroup == 0) before_.push_back(examples);
    examples += static_cast<std::uint32_t>(std::popcount(trained_[w]));
  }
}

/// Returns the index in the data set of the example with the sampling index begin() + number, or
/// kHeldOut if that row is held out.
std::uint32_t Numbering::index_of(std::size_t number) const {
  const std::size_t word = number / kWord;
  const std::uint64_t bit = std::uint64_t{1} << number % kWord;
  if ((trained_[word] & bit) == 0) return kHeldOut;
  std::uint32_t index = before_[word / kGroup];
  for (std::size_t w = word / kGroup * kGroup; w < word; ++w)
    index += static_cast<std::uint32_t>(std::popcount(trained_[w]));
  return index + static_cast<std::uint32_t>(std::popcount(trained_[word] & (bit - 1)));
}

/// Returns the sampling index, minus begin(), of the example with the index `index` in the data
/// set.
std::size_t Numbering::number_of(std::uint32_t index) const {
  const auto group = std::ranges::upper_bound(before_, index) - before_.begin() - 1;
  std::uint32_t left = index - before_[static_cast<std::size_t>(group)];
  std::size_t word = static_cast<std::size_t>(group) * kGroup;
  for (;; ++word) {
    const auto examples = static_cast<std::uint32_t>(std::popcount(trained_[word]));
    if (left < examples) break;
    left -= examples;
  }
  std::uint64_t bits = trained_[word];
  for (; left > 0; --left) bits &= bits - 1;
  return word * kWord + static_cast<std::size_t>(std::countr_zero(bits));
}

std::vector<std::uint32_t> Numbering::index() const {
  if (are_indices()) return {};
  std::vector<std::uint32_t> all(count());
  std::uint32_t next = 0;
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = (trained_[i / kWord] >> i % kWord & 1) != 0 ? next++ : kHeldOut;
  return all;
}

std::size_t Numbering::to_indices(std::span<std::uint32_t> drawn) const {
  if (are_indices()) return drawn.size();
  std::size_t left = 0;
  for (const std::uint32_t number : drawn)
    if (const std::uint32_t index = index_of(number); index != kHeldOut) drawn[left++] = index;
  return left;
}

std::vector<std::uint32_t> Numbering::numbers_of(std::span<const std::uint32_t> indices) const {
  std::vector<std::uint32_t> numbers(indices.begin(), indices.end());
  for (std::uint32_t& i : numbers)
    i = static_cast<std::uint32_t>(begin_ + (are_indices() ? i : number_of(i)));
  return numbers;
}

std::vector<float> Numbering::by_number(std::span<const float> values) const {
  std::vector<float> all(count(), 0.0f);
  if (are_indices()) {
    std::ranges::copy(values, all.begin());
    return all;
  }
  std::size_t next = 0;
  for (std::size_t i = 0; i < all.size() && next < values.size(); ++i)
    if ((trained_[i / kWord] >> i % kWord & 1) != 0) all[i] = values[next++];
  return all;
}

}  // namespace cudp
