#pragma once
// Sum of a step over ranks (runtime/ranks), the processes that each have a part of the training
// set. Either the devices add up the ranks' sums inside a recorded step, or the host does between
// two recordings.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/device/cuda/buffer.hpp"
#include "runtime/device/cuda/step_end.hpp"
#include "runtime/device/engine.hpp"
#include "runtime/device/rank_sums.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

inline Diagnostics diagnostics_of(const Tally& t) {
  return {.loss_units = t.loss,
          .norm_units = t.norm,
          .clipped = t.clipped,
          .examples = t.examples,
          .non_finite = t.non_finite};
}

/// Returns the totals of losses, gradient norms and counts that the device has added up in `tally`,
/// and resets them to 0. Waits for the device.
inline Diagnostics take_tally(Buffer<Tally>& tally) {
  const Tally t = tally.download().front();
  tally.clear();
  return diagnostics_of(t);
}

/// Adds up the gradient sum of a step, and its totals of losses, norms and counts, over all ranks
/// (processes). The constructor's arguments belong to the engine and must outlive this object.
class RankedSum {
 public:
  RankedSum(Gpu& gpu, const EngineSettings& settings, StepEnd& end, Buffer<Tally>& tally,
            std::size_t parameters)
      : gpu_(gpu),
        settings_(settings),
        end_(end),
        tally_(tally),
        words_(parameters + StepEnd::kRankWords) {}

  /// Decides whether the devices or the host add up the sums of ranks (processes), and tells the
  /// user. The decision is the same on all ranks. Later calls do nothing. Throws InputError if the
  /// user requires NCCL (--sum-by nccl) and it cannot be used.
  void choose() {
    if (on_device_) return;
    std::string why = "--sum-by host";
    if (settings_.sum_by != SumBy::host)
      why = join_on_devices(gpu_, *settings_.ranks, sum(), words_);
    if (!why.empty() && settings_.sum_by == SumBy::nccl)
      throw InputError("--sum-by: expected auto or host, since NCCL cannot add up (" + why +
                       "), found nccl");
    on_device_ = why.empty();
    if (!settings_.say) return;
    settings_.say(why.empty() ? "sums of ranks: by " + gpu_.device_sums().library +
                                    ", inside the recorded step"
                              : "sums of ranks: by the host (" + why + ")");
  }
  /// Returns whether the devices, and not the host, add up the sums. Requires choose().
  bool is_on_device() const { return *on_device_; }

  /// Launches an all-reduce with NCCL: on the device, it replaces this rank's gradient sum of the
  /// step, and its totals of losses, norms and counts, by the sums over all ranks. Call it while a
  /// CUDA graph is recorded.
  void launch() {
    gpu_.copy(end_.rank_words(), tally_.get(), sizeof(Tally));
    gpu_.clear(tally_.get(), sizeof(Tally));
    gpu_.sum_over_ranks(sum(), words_);
  }

  /// Reads the totals of losses, norms and counts over all ranks that launch() has computed, and
  /// adds them to those that take_diagnostics() returns. Call it after the CUDA graph has run.
  void read_tally() {
    const std::vector<FixedPoint> words = end_.download_rank_words();
    Tally tally;
    std::memcpy(&tally, words.data(), sizeof tally);
    diagnostics_ += diagnostics_of(tally);
  }

  /// Adds up on the host, over all ranks, this rank's gradient sum of the step and its totals of
  /// losses, norms and counts. It replaces launch() and read_tally() if the devices cannot do it.
  /// Waits for the device.
  void join() {
    const std::vector<FixedPoint> mine = end_.download_sum();
    std::vector<std::int64_t> words(mine.size() + Diagnostics::kWords);
    std::ranges::transform(mine, words.begin(),
                           [](FixedPoint units) { return static_cast<std::int64_t>(units); });
    std::int64_t* const seen = words.data() + mine.size();
    take_tally(tally_).to_words(seen);
    settings_.ranks->sum("the sum of a step", words);
    diagnostics_ += Diagnostics::of_words(seen);
    end_.upload_sum({reinterpret_cast<const FixedPoint*>(words.data()), mine.size()});
  }

  /// Returns the totals of losses, norms and counts of all ranks since the last call, and sets them
  /// to 0.
  Diagnostics take_diagnostics() { return std::exchange(diagnostics_, {}); }

 private:
  std::uint64_t* sum() const { return reinterpret_cast<std::uint64_t*>(end_.sum()); }

  Gpu& gpu_;
  const EngineSettings& settings_;
  StepEnd& end_;
  Buffer<Tally>& tally_;
  std::size_t words_;
  std::optional<bool> on_device_;
  Diagnostics diagnostics_;
};

}  // namespace cudp::cuda::inline CUDP_SIMT
