#pragma once
// Fills the shared memory of the fused kernel (kernels/fused/fused_kernel.cuh), at every barrier of
// a block, where its plan says that no later phase may read it: between groups all but the next
// group's input and the zeros around images. What is read nevertheless is not a number.
#include <cstring>
#include <vector>

#include "kernels/fused/fused_kernel.cuh"
#include "tests/support/simt/at_barrier.hpp"

namespace cudp {
namespace {

/// To be called at the barriers of a launch of one block (simt::set_at_barrier). P: the kernel's
/// Plan.
template <class P>
class PlaneFill {
 public:
  PlaneFill(FusedTask task, int examples) : groups_(fused::quotient_up(examples, P::kExamples)) {
    constexpr fused::Phases kPhases = P::kPhases;
    for (int i = 0; i < P::kConvolutions; ++i) {
      done_.push_back(kPhases.product(i));
      done_.push_back(kPhases.pool(i));
    }
    done_.push_back(kPhases.hidden());
    done_.push_back(kPhases.head());
    if (task == FusedTask::forward) return;
    done_.push_back(kPhases.hidden_back());
    for (int i = P::kConvolutions - 1; i >= 0; --i) {
      done_.push_back(kPhases.pool_back(i));
      done_.push_back(kPhases.gradient(i));
    }
    if (P::kTransforms) done_.push_back(kPhases.gradient(0));
    done_.push_back(kPhases.norm());
    if (is_summed(task) && !P::stage(0).has_example_owners) done_.push_back(kPhases.sum());
  }

  /// n: number of barriers that the block has passed. Two come before the first group.
  void operator()(unsigned n, const simt::SharedMemory& shared) const {
    auto& s = *reinterpret_cast<fused::Space<P>*>(shared.dynamic);
    if (n < 2 || n >= 2 + groups_ * done_.size()) return;
    const int done = done_[(n - 2) % done_.size()];
    if (done == 0) fill_before_group(s);
    std::vector<bool> is_needed(sizeof s.planes);
    fused::SharedLayout layout = P::kLayout;
    layout.for_each([&](const fused::Plane& p) {
      if (p.first > 0 && (p.first > done || p.last <= done)) return;
      for (int k = 0; k < p.bytes; ++k) is_needed[static_cast<std::size_t>(p.at) + k] = true;
    });
    for (std::size_t k = 0; k < is_needed.size(); ++k)
      if (!is_needed[k]) s.planes[k] = kFill;
  }

 private:
  static constexpr unsigned char kFill = 0xff;  // fp16, float32: not a number

  static void fill(fused::Space<P>& s, const fused::Plane& p, int e, int from, int bytes) {
    if (p.bytes > 0) std::memset(s.planes + p.at + e * p.stride + from, kFill, bytes);
  }
  /// Arrays that last for the whole launch, for their zeros or a 1: what each group writes of them.
  static void fill_before_group(fused::Space<P>& s) {
    std::memset(s.scale, kFill, sizeof s.scale);
    std::memset(s.adds, kFill, sizeof s.adds);
    const fused::SharedLayout layout = P::kLayout;
    for (int e = 0; e < P::kExamples; ++e) {
      fill(s, layout.raw, e, 0, layout.raw.stride);
      fill(s, layout.norm_parts, e, 0, layout.norm_parts.stride);
      fill(s, layout.vector, e, 16, P::kVector.size * 4 - 16);
      for (int i = 1; i < P::kConvolutions; ++i) {
        const fused::ConvStage c = P::stage(i), before = P::stage(i - 1);
        for (int part = 0; part < 2; ++part) {
          const auto chunk = [&](const fused::Plane& p, int at) {
            if (p.first == 0) fill(s, p, e, at * fused::kChunk, fused::kChunk);
          };
          for (int y = 0; y < before.pooled_height(); ++y)
            for (int x = 0; x < before.pooled_width(); ++x)
              for (int n = 0; n < c.channels / 8; ++n)
                chunk(layout.convolution[i].input[part],
                      n * c.plane + c.pixel_place(y + c.pad, x + c.pad));
          for (int y = 0; y < c.out_height; ++y)
            for (int x = 0; x < c.out_width; ++x)
              for (int n = 0; n < c.out / 8; ++n)
                chunk(layout.convolution[i].dy[part], n * c.dy_plane + c.dy_place(y, x));
        }
      }
    }
  }

  int groups_;
  /// Number of the phase that a group's block has done (fused::Phases) at each of its barriers.
  std::vector<int> done_ = {0};
};

}  // namespace
}  // namespace cudp
