#include "privacy/rdp/default_orders.hpp"

#include <array>
#include <cstddef>

namespace cudp::privacy {
namespace {

std::array<double, 156> make_default_orders() {
  std::array<double, 156> orders{};
  std::size_t n = 0;
  for (int tenth = 1; tenth <= 99; ++tenth) orders[n++] = 1.0 + tenth / 10.0;
  for (int order = 11; order <= 63; ++order) orders[n++] = order;
  for (const int order : {128, 256, 512, 1024}) orders[n++] = order;
  return orders;
}

}  // namespace

std::span<const double> default_orders() {
  static const std::array<double, 156> orders = make_default_orders();
  return orders;
}

}  // namespace cudp::privacy
