#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "models/model.hpp"
#include "runtime/device/audit_tap.hpp"
#include "runtime/device/cpu/worker.hpp"

namespace cudp::cpu {

/// Canaries of an audit: the last examples of the training set, whose gradients are replaced by
/// known ones (AuditTap). Adds their contributions to the sums of an engine. Empty if the tap is
/// null, which it is outside of an audit.
class Canaries {
 public:
  /// Keeps the pointers. Throws Error if a canary's parameter does not exist.
  Canaries(const Network& network, const CpuLayout& layout, const AuditTap* tap);

  /// Loads the canaries of a training set of `examples` examples: they are its last ones. Throws
  /// Error if it has fewer examples than canaries.
  void load(std::size_t examples);

  /// Returns the number of `examples` that are not canaries. `examples` is ascending, so these come
  /// first.
  std::size_t ordinary(std::span<const std::uint32_t> examples) const;

  /// Adds the known gradients of the canaries in a batch to `sum`, clipped or accepted as `use`
  /// states, and rounded. examples: indices of these canaries. sum: [Storage::packed], in grid
  /// steps. Writes records [examples.size()] unless null.
  void add(std::span<const std::uint32_t> examples, const GradientUse& use, std::int64_t* sum,
           ExampleRecord* records) const;

  /// Overwrites the canaries' entries in `norms`, the gradient norms of all training examples.
  void set_norms(std::span<float> norms) const;

 private:
  std::uint32_t parameter_of(std::uint32_t example) const {
    return tap_->canaries[example - first_];
  }
  int group_of(std::uint32_t parameter) const;

  const Network& network_;
  const CpuLayout& layout_;
  const AuditTap* tap_;
  std::uint32_t first_ = 0xffffffff;
};

}  // namespace cudp::cpu
