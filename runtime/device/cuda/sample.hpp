#pragma once
// Poisson sampling and random allocation on a device.
#include <algorithm>
#include <cstddef>
#include <cstdint>

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

/// Launches a kernel that starts the next step of several whose batches were drawn earlier: it
/// copies the step's batch from next.batches to next.drawn. *next.space.cursor, in device memory,
/// tells which step that is; the kernel advances it.
void begin_drawn_step(Gpu& gpu, const NextStep& next);

/// Device memory for random allocation: the step of its epoch in which each example is used, for
/// several consecutive epochs, which one launch chooses. So a launch is needed only every few
/// epochs of a small training set, and steps only read. An example's step depends on the random key
/// and on the epoch's number alone, so it may be chosen before earlier epochs are done.
class AllocatedEpochs {
 public:
  /// Maximum number of epochs in memory.
  static constexpr std::size_t kMaxEpochs = 16;
  /// Maximum size of the memory [bytes], if it is for more than one epoch.
  static constexpr std::size_t kMaxBytes = std::size_t{16} << 20;

  AllocatedEpochs() = default;
  /// Allocates memory for as many epochs as fit into kMaxBytes, and into 1/1024 of the device's
  /// memory, but for at least one (4 bytes an example) and at most kMaxEpochs.
  AllocatedEpochs(Gpu& gpu, std::size_t examples)
      : gpu_(&gpu),
        epochs_(epochs_of(gpu, examples)),
        step_(gpu, epochs_ * padded(examples)),
        range_(gpu, 1) {}

  StoredEpochs stored() const {
    return {
        .step = step_.get(), .epochs = static_cast<std::uint32_t>(epochs_), .range = range_.get()};
  }
  /// Call before a batch of step number `step` is drawn, and before a recorded CUDA graph is
  /// replayed that draws it: chooses the steps of the examples in the step's epoch, and in those
  /// after it, unless they are in memory. Returns for how many steps, from `step` on, they are in
  /// memory. Without random allocation, does nothing and returns the largest number. args:
  /// arguments for drawing the batch of a single step.
  std::size_t prepare(const SampleArgs& args, std::uint64_t step);

 private:
  static std::size_t padded(std::size_t examples) { return (examples + 255) / 256 * 256; }
  static std::size_t epochs_of(const Gpu& gpu, std::size_t examples) {
    const std::size_t memory = std::min(kMaxBytes, gpu.memory() / 1024);
    const std::size_t bytes = std::max<std::size_t>(padded(examples), 1) * sizeof(std::uint32_t);
    return std::clamp<std::size_t>(memory / bytes, 1, kMaxEpochs);
  }

  Gpu* gpu_ = nullptr;
  std::size_t epochs_ = 1;
  Buffer<std::uint32_t> step_;  // StoredEpochs::step
  Buffer<StepRange> range_;
  StepRange steps_;  // the same as range_, on the host
};

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
  /// makes the run fail.
  DrawnAhead(Gpu& gpu, std::size_t examples, std::size_t list_size)
      : gpu_(gpu),
        list_size_(list_size),
        steps_(steps_of(gpu, examples, list_size)),
        flags_(gpu, steps_ * tiles(examples) * 16),
        counts_(gpu, steps_ * (tiles(examples) + 1)),
        count_(gpu, steps_),
        drawn_(gpu, steps_ * list_size),
        range_(gpu, 1) {}

  /// Returns the number of steps whose batches, of at most list_size examples each, can be drawn at
  /// once: as many as fit into kMaxBytes, and into 1/1024 of the device's memory. May be 0.
  static std::size_t steps_of(const Gpu& gpu, std::size_t examples, std::size_t list_size) {
    const std::size_t memory = std::min(kMaxBytes, gpu.memory() / 1024);
    const std::size_t of_a_step = tiles(examples) * 16 * sizeof(std::uint16_t) +
                                  (tiles(examples) + 2 + list_size) * sizeof(std::uint32_t);
    return std::min(kMaxSteps, memory / of_a_step);
  }

  BatchesAhead batches() const {
    return {.range = range_.get(),
            .counts = count_.get(),
            .examples = drawn_.get(),
            .list_size = static_cast<std::uint32_t>(list_size_)};
  }
  /// Returns whether the batch of step number `step` has been drawn and not been overwritten.
  bool has(std::uint64_t step) const { return drawn_steps_.has(step); }
  /// Draws the batches of steps first, first + 1, ...: of `wanted` steps, or of fewer if memory is
  /// for fewer. If they continue the steps that were drawn before, the run is likely to go on: then
  /// draws at least twice as many as before. Overwrites the batches that were drawn before. args:
  /// arguments for drawing the batch of a single step. max_steps: largest number of steps to draw;
  /// with random allocation, those whose epochs AllocatedEpochs has.
  void draw(SampleArgs args, std::uint64_t first, std::size_t wanted, std::size_t max_steps) {
    const StepRange before = drawn_steps_;
    const std::uint64_t more = before.end == first ? 2 * (before.end - before.first) : 0;
    const std::size_t steps = std::min({std::max<std::size_t>(wanted, more), max_steps, steps_});
    drawn_steps_ = {first, first + steps};
    args.stream.step = first;
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
  Buffer<StepRange> range_;
  StepRange drawn_steps_;  // the same as range_, on the host
};

}  // namespace cudp::cuda::inline CUDP_SIMT
