#pragma once
// Poisson sampling and random allocation on a device.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "kernels/step/sample.hpp"
#include "runtime/device/cuda/buffer.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// Device memory for drawing a batch: scratch arrays, and the number of examples that were drawn.
class SampleScratch {
 public:
  SampleScratch() = default;
  SampleScratch(Gpu& gpu, std::size_t examples)
      : flags_(gpu, tiles(examples) * 16), counts_(gpu, tiles(examples) + 1), count_(gpu, 1) {}

  SampleSpace space() const {
    return {.flags = flags_.get(), .counts = counts_.get(), .count = count_.get()};
  }
  /// Writes the number of examples of the batch to the device.
  void set_count(std::size_t count) {
    const auto n = static_cast<std::uint32_t>(count);
    count_.upload({&n, 1});
  }
  /// Returns the number of examples that were drawn. Waits for the device.
  std::uint32_t count() const { return count_.download().front(); }

 private:
  static std::size_t tiles(std::size_t examples) { return (examples + 255) / 256; }

  Buffer<std::uint16_t> flags_;
  Buffer<std::uint32_t> counts_;
  Buffer<std::uint32_t> count_;
};

/// Launches the kernels that draw a batch: they write the indices of its examples to args.drawn,
/// and their number to *space.count, in device memory. steps: number of consecutive steps whose
/// batches are drawn; must be 1 if space.cursor is set.
void draw_examples(Gpu& gpu, const SampleArgs& args, SampleSpace space, std::size_t steps = 1);

/// Launches the random allocation of examples to the steps of the epoch that contains step number
/// args.stream.step: writes to `allocated`, for each example from args.begin to args.end - 1, the
/// step of the epoch in which it is used.
void allocate_epoch(Gpu& gpu, const SampleArgs& args, std::uint32_t* allocated);

/// Launches a kernel that starts the next step of several whose batches were drawn earlier: it
/// copies the step's batch from next.batches to next.drawn. *next.space.cursor, in device memory,
/// tells which step that is; the kernel advances it.
void begin_drawn_step(Gpu& gpu, const NextStep& next);

/// Memory for the batches of several consecutive steps, which one pair of kernel launches draws. A
/// batch depends on the random key and on the step's number alone, so it may be drawn before
/// earlier steps are done.
class DrawnAhead {
 public:
  /// Maximum number of steps whose batches are drawn at once.
  static constexpr std::size_t kMaxSteps = 256;
  /// Maximum size of the memory for the batches of several steps [bytes].
  static constexpr std::size_t kMaxBytes = std::size_t{16} << 20;

  /// Allocates memory for the batches. list_size: largest possible batch [examples]; a larger one
  /// makes the run fail. allocates: true if each example is allocated to a random step of each
  /// epoch, false for Poisson sampling.
  DrawnAhead(Gpu& gpu, std::size_t examples, std::size_t list_size, bool allocates)
      : gpu_(gpu),
        list_size_(list_size),
        steps_(steps_of(gpu, examples, list_size, allocates)),
        flags_(gpu, steps_ * tiles(examples) * 16),
        counts_(gpu, steps_ * (tiles(examples) + 1)),
        count_(gpu, steps_),
        drawn_(gpu, steps_ * list_size),
        allocated_(gpu, allocates && steps_ > 0 ? examples : 0),
        range_(gpu, 1) {}

  /// Returns the number of steps whose batches, of at most list_size examples each, can be drawn at
  /// once: as many as fit into kMaxBytes, and into 1/1024 of the device's memory. May be 0.
  /// allocates: true for random allocation, false for Poisson sampling.
  static std::size_t steps_of(const Gpu& gpu, std::size_t examples, std::size_t list_size,
                              bool allocates) {
    const std::size_t memory = std::min(kMaxBytes, gpu.memory() / 1024);
    const std::size_t of_allocation = allocates ? examples * sizeof(std::uint32_t) : 0;
    if (memory < of_allocation) return 0;
    const std::size_t of_a_step = tiles(examples) * 16 * sizeof(std::uint16_t) +
                                  (tiles(examples) + 2 + list_size) * sizeof(std::uint32_t);
    return std::min(kMaxSteps, (memory - of_allocation) / of_a_step);
  }

  std::size_t steps() const { return steps_; }
  BatchesAhead batches() const {
    return {.range = range_.get(),
            .counts = count_.get(),
            .examples = drawn_.get(),
            .list_size = static_cast<std::uint32_t>(list_size_)};
  }
  /// Returns how many steps, from step `first` on, a single call of draw() may draw batches for.
  /// With random allocation all of them must be in the same epoch.
  std::size_t steps_from(const SampleArgs& args, std::uint64_t first) const {
    if (args.epoch_steps == 0) return steps_;
    return std::min<std::size_t>(steps_, args.epoch_steps - first % args.epoch_steps);
  }
  /// Draws the batches of steps first, first + 1, ..., `steps` of them, at most steps_from().
  /// Overwrites the batches that were drawn before. args: arguments for drawing the batch of a
  /// single step.
  void draw(SampleArgs args, std::uint64_t first, std::size_t steps) {
    args.stream.step = first;
    if (args.epoch_steps != 0) {
      const std::uint64_t epoch = first / args.epoch_steps;
      if (epoch_ != epoch) allocate_epoch(gpu_, args, allocated_.get());
      epoch_ = epoch;
      args.allocated = allocated_.get();
    }
    args.drawn = drawn_.get();
    draw_examples(gpu_, args,
                  {.flags = flags_.get(),
                   .counts = counts_.get(),
                   .count = count_.get(),
                   .list_size = static_cast<std::uint32_t>(list_size_),
                   .range = range_.get()},
                  steps);
  }

 private:
  static std::size_t tiles(std::size_t examples) { return (examples + 255) / 256; }

  Gpu& gpu_;
  std::size_t list_size_;
  std::size_t steps_;
  Buffer<std::uint16_t> flags_;
  Buffer<std::uint32_t> counts_;
  Buffer<std::uint32_t> count_;
  Buffer<std::uint32_t> drawn_;
  Buffer<std::uint32_t> allocated_;  // steps of the examples in epoch_
  std::optional<std::uint64_t> epoch_;
  Buffer<StepRange> range_;
};

}  // namespace cudp::cuda::inline CUDP_SIMT
