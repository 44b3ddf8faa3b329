#pragma once
#include <memory>
#include <utility>

#include "runtime/device/linear_engine.hpp"
#include "runtime/device/linear_sensitivity.hpp"
#include "runtime/ranks/ranks.hpp"

namespace cudp {

/// Linear engine for training by several ranks (processes), each of which has its own range of the
/// training set: adds up the ranks' sums. The result is exact, because every rank's sum is an
/// integer multiple of the same power of two.
class JoinedLinearEngine final : public LinearEngine {
 public:
  /// Makes an engine for all ranks. mine: engine for this rank's examples. max_examples: upper
  /// bound on the number of examples of all ranks together; must be the one with which `mine` was
  /// made. ranks: must outlive the engine.
  JoinedLinearEngine(std::unique_ptr<LinearEngine> mine, double max_examples, Ranks& ranks)
      : mine_(std::move(mine)), max_examples_(max_examples), ranks_(ranks) {}

  int dimension() const override { return mine_->dimension(); }
  std::size_t size() const override { return mine_->size(); }
  void draw_batch(const RandomStream& stream, std::uint64_t threshold) override {
    mine_->draw_batch(stream, threshold);
  }
  std::vector<std::uint32_t> batch() override { return mine_->batch(); }

  std::vector<double> clipped_gradient_sum(std::span<const float> w, double max_norm) override {
    return joined("the sum of gradients", mine_->clipped_gradient_sum(w, max_norm), max_norm);
  }
  std::vector<double> clipped_losses(std::span<const float> direction, std::span<const float> steps,
                                     double max_loss) override {
    return joined("the sums of losses", mine_->clipped_losses(direction, steps, max_loss),
                  max_loss);
  }
  std::uint64_t correct(std::span<const float> w, const Dataset& test) override {
    return mine_->correct(w, test);
  }

 private:
  std::vector<double> joined(const char* what, std::vector<double> sums, double bound) {
    sum_multiples(ranks_, what, sums, linear_grid(bound, max_examples_));
    return sums;
  }

  std::unique_ptr<LinearEngine> mine_;
  double max_examples_;
  Ranks& ranks_;
};

}  // namespace cudp
