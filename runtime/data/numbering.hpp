#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/data/dataset.hpp"

namespace cudp {

/// The numbers that examples are drawn by: their places, or where some rows were held out those in
/// the file (Dataset::numbers), so that who is drawn beside an example does not depend on who was
/// held out. data must outlive this.
class Numbering {
 public:
  explicit Numbering(const Dataset& data) : data_(data) {
    if (data.numbers.empty()) return;
    place_.assign(static_cast<std::size_t>(data.numbers.back()) + 1, kNone);
    for (std::size_t i = 0; i < data.numbers.size(); ++i)
      place_[data.numbers[i]] = static_cast<std::uint32_t>(i);
  }

  /// One more than the largest number.
  std::size_t count() const { return place_.empty() ? data_.size() : place_.size(); }
  bool are_places() const { return place_.empty(); }

  /// Puts the places of examples where their numbers are, both ascending, without those of held-out
  /// rows; returns how many are left.
  std::size_t to_places(std::span<std::uint32_t> drawn) const {
    if (place_.empty()) return drawn.size();
    std::size_t left = 0;
    for (const std::uint32_t number : drawn)
      if (place_[number] != kNone) drawn[left++] = place_[number];
    return left;
  }
  std::vector<std::uint32_t> numbers_of(std::span<const std::uint32_t> places) const {
    std::vector<std::uint32_t> numbers(places.begin(), places.end());
    if (!place_.empty())
      for (std::uint32_t& i : numbers) i = data_.numbers[i];
    return numbers;
  }
  /// Values of examples by their numbers; 0 of held-out rows.
  std::vector<float> by_number(std::span<const float> values) const {
    std::vector<float> all(count(), 0.0f);
    for (std::size_t i = 0; i < values.size(); ++i)
      all[place_.empty() ? i : data_.numbers[i]] = values[i];
    return all;
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  const Dataset& data_;
  std::vector<std::uint32_t> place_;  // by number
};

}  // namespace cudp
