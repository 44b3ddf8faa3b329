#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "models/model.hpp"
#include "runtime/device/audit_tap.hpp"
#include "runtime/device/cpu/worker.hpp"

namespace cudp::cpu {

/// Canaries of an audit (AuditTap lists them), which an engine adds as if they were additional
/// training examples. Empty if the tap is null, which it is outside of an audit.
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

  /// Adds the contributions of canaries, as Worker::add() does for other examples. sum:
  /// [Storage::packed], in grid steps.
  void add(std::span<const std::uint32_t> examples, const GradientUse& use, std::int64_t* sum,
           ExampleRecord* records) const;

  /// Writes the norms of the canaries to the norms of all examples.
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
