#pragma once
// What several tests of the accountant say alike.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "privacy/accountant.hpp"
#include "privacy/rdp/default_orders.hpp"

namespace cudp::privacy {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();
inline constexpr Neighbours replaced{.relation = NeighbouringRelation::replace_one, .group = 1};
inline const AccountantOptions by_pld{.kind = AccountantKind::pld};
inline const std::vector<double> default_list(default_orders().begin(), default_orders().end());

inline bool close(double found, double expected, double relative) {
  return found == expected || std::fabs(found / expected - 1) <= relative;
}

/// `value` is above `truth`, and by no more than `margin`, relatively.
inline void expect_just_above(double value, double truth, double margin, const std::string& where) {
  EXPECT_TRUE(value >= truth * (1 - 1e-15)) << where << ": " << value << " below " << truth;
  EXPECT_TRUE(value <= truth * (1 + margin)) << where << ": " << value << " above " << truth;
}

}  // namespace cudp::privacy
