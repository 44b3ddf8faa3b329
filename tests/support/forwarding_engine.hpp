#pragma once
// Engine that forwards every call to another engine. Tests override what they change.
#include <memory>
#include <utility>
#include <vector>

#include "runtime/device/engine.hpp"

namespace cudp {

class ForwardingEngine : public Engine {
 public:
  explicit ForwardingEngine(std::unique_ptr<Engine> real) : real_(std::move(real)) {}

  void load(const Dataset& train) override { real_->load(train); }
  void set_state(const TrainState& state) override { real_->set_state(state); }
  TrainState state() override { return real_->state(); }
  void run(const StepRecipe& recipe, std::uint64_t first,
           std::span<const StepScalars> scalars) override {
    real_->run(recipe, first, scalars);
  }
  FollowedSteps run_following(const StepRecipe& recipe, std::uint64_t first,
                              std::span<const StepScalars> scalars, const ClipRule& rule,
                              float clip, std::span<const std::int64_t> count_noise) override {
    return real_->run_following(recipe, first, scalars, rule, clip, count_noise);
  }
  void measure_norms() override { real_->measure_norms(); }
  std::vector<float> norms() override { return real_->norms(); }
  std::uint64_t norm_total(double max_norm, double grid) override {
    return real_->norm_total(max_norm, grid);
  }
  std::vector<float> logits(const Dataset& examples) override { return real_->logits(examples); }
  PerExample per_example(std::span<const std::uint32_t> examples, bool gradients) override {
    return real_->per_example(examples, gradients);
  }
  std::vector<std::uint32_t> sampled(std::uint64_t step) override { return real_->sampled(step); }
  Diagnostics diagnostics() override { return real_->diagnostics(); }
  bool read_all_rows(std::uint64_t step, const Draw& draw, const RowUse& use) override {
    return real_->read_all_rows(step, draw, use);
  }

 private:
  std::unique_ptr<Engine> real_;
};

}  // namespace cudp
