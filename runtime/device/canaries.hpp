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

/// How a step adds the gradients of canaries: clipped, perhaps transformed before; or, without
/// clipping settings, as directions of accepted candidates.
struct CanaryUse {
  std::optional<ClipSettings> clip = {};
  const float* inverse = nullptr;  ///< [numbers of the sum], CoordinateScale's 1 / scale; or null
  ImportanceRule rule = {};
  RandomStream stream = {};  ///< Stream::acceptance at the step
  float* norms = nullptr;    ///< [examples], norms as last seen; updated for candidates
  float inverse_grid = 0.0f;
};

/// Private statistics of a canary.
struct CanaryFacts {
  float squared_norm;
  bool clipped;
};

/// Canaries of an audit (AuditTap lists them), which an engine adds as if they were additional
/// training examples. Empty if the tap is null, which it is outside of an audit.
class Canaries {
 public:
  /// Keeps the reference and the pointer. Throws Error if a canary's parameter does not exist.
  Canaries(const Network& network, const AuditTap* tap);

  /// Loads the canaries of a training set of `examples` examples: they are its last ones. Throws
  /// Error if it has fewer examples than canaries.
  void load(std::size_t examples);

  /// Returns the number of `examples` that are not canaries. `examples` is ascending, so these come
  /// first.
  std::size_t ordinary(std::span<const std::uint32_t> examples) const;

  /// Adds the contributions of canaries to sum, in grid steps. Returns their statistics. where:
  /// index in the sum of each parameter, [d], or null if they are the same.
  std::vector<CanaryFacts> add(std::span<const std::uint32_t> examples, const CanaryUse& use,
                               std::int64_t* sum, const std::int32_t* where = nullptr) const;

  /// Writes the norms of the canaries to the norms of all examples.
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
