#pragma once
#include <span>

namespace cudp::privacy {

/// Returns the Renyi orders used by default, ascending: those of dp_accounting's RDP accountant,
/// 1.1 to 10.9 in tenths, 11 to 63, 128, 256, 512, 1024.
std::span<const double> default_orders();

}  // namespace cudp::privacy
