#pragma once
#include <cmath>
#include <cstdint>

namespace cudp {

/// DP-SGD whose noise falls from epoch to epoch, Yu et al. 2019 (arXiv:1904.02200), exponential
/// decay: sigma_t = sigma_0 exp(-k t), t in epochs. All else is DpSgd's. sigma_0 follows from the
/// composition of the whole falling sequence; that k is chosen on the data is, as everywhere, not
/// part of epsilon.
inline double decaying_noise(double k, std::uint64_t epoch) {
  return std::exp(-k * static_cast<double>(epoch));
}

}  // namespace cudp
