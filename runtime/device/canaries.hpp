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

/// Settings that determine how the gradients of canaries (examples with a chosen gradient, for
/// audits) are added to a step's sum. If `clip` is set, each gradient is clipped, and before that
/// transformed (coordinate-wise clipping) if `inverse` is not null. If `clip` is not set, the step
/// uses importance sampling: a drawn canary is accepted or rejected, and an accepted one adds its
/// gradient divided by the gradient's norm.
struct CanaryUse {
  std::optional<ClipSettings> clip = {};
  const float* inverse = nullptr;  ///< [numbers of the sum], CoordinateScale's 1 / scale; or null
  ImportanceRule rule = {};
  RandomStream stream = {};  ///< Stream::acceptance at the step
  /// Gradient norm of each example when it was last computed, [examples]. Importance sampling
  /// updates those of the drawn canaries.
  float* norms = nullptr;
  float inverse_grid = 0.0f;
};

/// Gradient norm of a canary in a step, and whether its gradient was clipped. It must not be
/// published, because it reveals that the canary was drawn.
struct CanaryFacts {
  float squared_norm;
  bool clipped;
};

/// Canaries of an audit: examples with a chosen gradient. Their contributions are computed here,
/// and the engine adds them to those of other examples. A training that is not audited has an
/// object without canaries.
class Canaries {
 public:
  /// Makes the canaries that the settings of an audit describe. tap: these settings, which name the
  /// canaries' parameters; null without an audit. Keeps `tap` and a reference to `network`. Throws
  /// Error if the network does not have one of these parameters.
  Canaries(const Network& network, const AuditTap* tap);

  /// Makes the last examples of a training set of `examples` examples the canaries. Throws Error if
  /// it has fewer examples than there are canaries.
  void load(std::size_t examples);

  /// Returns how many of the given examples are not canaries. examples: indices in the training
  /// set, ascending, so those of canaries come last.
  std::size_t ordinary(std::span<const std::uint32_t> examples) const;

  /// Adds the contributions of the canaries among `examples` to `sum`, as integer multiples of the
  /// step's grid, 1 / use.inverse_grid. Returns for each of these canaries its gradient norm and
  /// whether it was clipped. where: index in `sum` of each parameter, [d]; null if it equals the
  /// parameter's number.
  std::vector<CanaryFacts> add(std::span<const std::uint32_t> examples, const CanaryUse& use,
                               std::int64_t* sum, const std::int32_t* where = nullptr) const;

  /// Writes the gradient norm of each canary to norms[i], with i the canary's index in the training
  /// set. norms: [examples].
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
