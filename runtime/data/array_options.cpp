#include "runtime/data/array_options.hpp"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/base/number_text.hpp"
#include "runtime/data/bytes.hpp"
#include "runtime/data/schema.hpp"

namespace cudp {
namespace {

std::vector<std::string_view> parts_between(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

std::optional<Shape> parse_input_shape(const std::string& text, const std::string& place) {
  if (text.empty()) return {};
  const auto refuse = [&] {
    throw InputError(place + ": expected the shape of one example, CxHxW or HxW, of 1 to " +
                     std::to_string(kMaxFeatures) + " numbers, such as 3x32x32, found " +
                     shown(text));
  };
  std::vector<int> sides;
  std::int64_t numbers = 1;
  for (const std::string_view part : parts_between(text, 'x')) {
    int side = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), side);
    if (error != std::errc() || end != part.data() + part.size() || side < 1 || side > kMaxFeatures)
      refuse();
    sides.push_back(side);
    numbers *= side;
    if (sides.size() > 3 || numbers > kMaxFeatures) refuse();
  }
  if (sides.size() < 2) refuse();
  if (sides.size() == 2) sides.insert(sides.begin(), 1);
  return Shape{sides[0], sides[1], sides[2]};
}

ArrayNames parse_array_names(const std::string& text, const std::string& place) {
  if (text.empty()) return {};
  ArrayNames names;
  const std::vector<std::string_view> parts = parts_between(text, ',');
  names.features = parts[0];
  if (parts.size() > 1) names.labels = parts[1];
  if (parts.size() > 2 || names.features.empty() || (parts.size() == 2 && names.labels.empty()) ||
      names.features == names.labels)
    throw InputError(place +
                     ": expected the names of two arrays, features first, such as "
                     "x_train,y_train, found " +
                     shown(text));
  return names;
}

std::optional<TargetBounds> parse_target_bounds(const std::string& text, const std::string& place) {
  if (text.empty()) return {};
  const std::vector<std::string_view> parts = parts_between(text, ',');
  if (parts.size() == 2) {
    const std::optional<double> low = read_number<double>(parts[0]);
    const std::optional<double> high = read_number<double>(parts[1]);
    constexpr double kMaxFloat = std::numeric_limits<float>::max();
    if (low && high && *low < *high && std::fabs(*low) <= kMaxFloat &&
        std::fabs(*high) <= kMaxFloat && *high - *low <= kMaxFloat)
      return TargetBounds{*low, *high};
  }
  throw InputError(place + ": expected two numbers, the smaller one first, such as 0,100, found " +
                   shown(text));
}

}  // namespace cudp
