#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "models/model.hpp"
#include "runtime/device/audit_tap.hpp"
#include "runtime/device/cpu/worker.hpp"

namespace cudp::cpu {

/// The canaries of an audit, as examples of a training set; see AuditTap. Without a tap there are
/// none.
class Canaries {
 public:
  /// Throws Error where a canary is no parameter. Keeps the pointers.
  Canaries(const Network& network, const CpuLayout& layout, const AuditTap* tap);

  /// Loads the canaries of a training set of so many examples; throws Error where it has fewer than
  /// canaries.
  void load(std::size_t examples);

  /// How many of `examples`, ascending, are not canaries: those come first.
  std::size_t ordinary(std::span<const std::uint32_t> examples) const;

  /// Adds what Worker::add adds, for canaries alone; the sum is [Storage::packed], in units of the
  /// grid.
  void add(std::span<const std::uint32_t> examples, const GradientUse& use, std::int64_t* sum,
           ExampleRecord* records) const;

  /// Puts their norms among those of all examples.
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
