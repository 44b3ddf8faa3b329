#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/contribution/contribution.hpp"
#include "kernels/random/random.hpp"
#include "models/model.hpp"
#include "runtime/device/audit_tap.hpp"

namespace cudp {

/// How a step adds the gradients of canaries. With `clip`: transformed if `inverse` is set, then
/// clipped. Without: by importance sampling, which adds the gradient over its norm if the drawn
/// canary is accepted.
struct CanaryUse {
  std::optional<ClipSettings> clip = {};
  const float* inverse = nullptr;  ///< [numbers of the sum], CoordinateScale's 1 / scale; or null
  ImportanceRule rule = {};
  RandomStream stream = {};  ///< Stream::acceptance at the step
  /// [examples], last known gradient norms; importance sampling updates those of drawn canaries
  float* norms = nullptr;
  float inverse_grid = 0.0f;
};

/// Private statistics of a canary.
struct CanaryFacts {
  float squared_norm;
  bool clipped;
};

/// Canaries of an audit (AuditTap), whose contributions an engine adds like those of other
/// examples. There are none if the tap is null, as in every training that is not audited.
class Canaries {
 public:
  /// Keeps a reference to `network` and the pointer `tap`. Throws Error if a canary's parameter
  /// does not exist.
  Canaries(const Network& network, const AuditTap* tap);

  /// Loads the canaries of a training set of `examples` examples: they are its last ones. Throws
  /// Error if it has fewer examples than canaries.
  void load(std::size_t examples);

  /// Returns the number of `examples` that are not canaries. `examples` is ascending, so these come
  /// first.
  std::size_t ordinary(std::span<const std::uint32_t> examples) const;

  /// Adds the contributions of those of `examples` that are canaries to `sum`, as integer multiples
  /// of the sum's grid (CanaryUse::inverse_grid). Returns their statistics. where: [d], index of
  /// each parameter in `sum`; null if index and parameter number are equal.
  std::vector<CanaryFacts> add(std::span<const std::uint32_t> examples, const CanaryUse& use,
                               std::int64_t* sum, const std::int32_t* where = nullptr) const;

  /// Writes the gradient norms of the canaries to their entries of norms [examples].
  void set_norms(std::span<float> norms) const;

 private:
  std::uint32_t parameter_of(std::uint32_t example) const {
    return tap_->canaries[example - first_];
  }
  int group_of(std::uint32_t parameter) const;

  const Network& network_;
  const AuditTap* tap_;
  std::uint32_t first_ = 0xffffffff;
};

}  // namespace cudp
