#pragma once
#include <cstdint>

#include "runtime/engine.hpp"
#include "runtime/schedule.hpp"

namespace cudp {

/// DP-SGD: Abadi et al. 2016, Algorithm 1, with the Poisson sampling that its analysis needs
/// (Mironov, Talwar, Zhang 2019) and division by the expected batch b instead of the drawn one.
class DpSgd {
 public:
  explicit DpSgd(const Schedule& schedule) : schedule_(schedule) {}

  /// Steps first <= t < last.
  void run(Engine& engine, std::uint64_t first, std::uint64_t last) const;

 private:
  Schedule schedule_;
};

}  // namespace cudp
