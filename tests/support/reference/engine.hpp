#pragma once
// Reference engine with the oracle's arithmetic: slow, in double, and simple. The state is rounded
// to float after every step, because a checkpoint stores floats.
#include <cmath>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/device/engine.hpp"
#include "tests/support/reference/network.hpp"
#include "tests/support/reference/random.hpp"

namespace cudp::reference {

/// Returns the clip factors of one example, [groups]; all 0 if it is not finite.
inline Values clip_factors(const ClipSettings& clip, const Values& squared_norms) {
  double total = 0.0;
  for (const double s : squared_norms) total += s;
  Values factors(squared_norms.size(), 0.0);
  if (!std::isfinite(total)) return factors;
  for (std::size_t g = 0; g < factors.size(); ++g) {
    const double groups = static_cast<double>(factors.size());
    switch (clip.kind) {
      case Clipping::flat:
        factors[g] = std::fmin(1.0, clip.clip_norm / std::sqrt(total));
        break;
      case Clipping::per_layer:
        factors[g] = std::fmin(1.0, clip.clip_norm / std::sqrt(groups * squared_norms[g]));
        break;
      case Clipping::automatic:
        factors[g] = clip.clip_norm / (std::sqrt(total) + clip.stability);
        break;
    }
  }
  return factors;
}

/// Makes one optimizer step with the noisy gradient g [d].
inline void update(const OptimizerSettings& o, const StepScalars& s, const Values& g,
                   TrainState& state) {
  for (std::size_t j = 0; j < g.size(); ++j) {
    double theta = state.parameters[j];
    double gradient = g[j];
    if (o.kind != OptimizerKind::adamw) gradient += o.weight_decay * theta;
    if (o.kind == OptimizerKind::sgd) {
      theta -= s.learning_rate * gradient;
    } else if (o.kind == OptimizerKind::momentum || o.kind == OptimizerKind::nesterov) {
      const double m = static_cast<double>(o.momentum) * state.moment1[j] + gradient;
      state.moment1[j] = static_cast<float>(m);
      theta -=
          s.learning_rate *
          (o.kind == OptimizerKind::momentum ? m : gradient + static_cast<double>(o.momentum) * m);
    } else {
      const double b1 = o.beta1;
      const double b2 = o.beta2;
      const double m = b1 * state.moment1[j] + (1.0 - b1) * gradient;
      const double v = b2 * state.moment2[j] + (1.0 - b2) * gradient * gradient;
      state.moment1[j] = static_cast<float>(m);
      state.moment2[j] = static_cast<float>(v);
      double direction = m * s.bias1 / (std::sqrt(v * s.bias2) + o.epsilon);
      if (o.kind == OptimizerKind::adamw) direction += o.weight_decay * theta;
      theta -= s.learning_rate * direction;
    }
    state.parameters[j] = static_cast<float>(theta);
    if (!state.average.empty()) {
      const double decay = s.ema_decay;
      state.average[j] = static_cast<float>(decay * state.average[j] + (1.0 - decay) * theta);
    }
  }
}

class ReferenceEngine : public Engine {
 public:
  ReferenceEngine(const Network& network, const EngineSettings& settings)
      : net_(network), settings_(settings) {}

  void load(const Dataset& train) override {
    if (!(train.shape == net_.input)) throw InputError("the data set does not fit the network");
    train_ = train;
  }

  void set_state(const TrainState& state) override {
    state_ = state;
    if (std::holds_alternative<Candidates>(settings_.recipe.draw))
      state_.norms.resize(train_.size());
  }
  TrainState state() override { return state_; }

  void run(const StepRecipe& recipe, std::uint64_t first,
           std::span<const StepScalars> scalars) override {
    for (std::size_t i = 0; i < scalars.size(); ++i) take_step(recipe, first + i, scalars[i]);
  }

  void measure_norms() override {
    state_.norms.resize(train_.size());
    for (std::uint32_t i = 0; i < train_.size(); ++i)
      state_.norms[i] = static_cast<float>(norm_of(weighted(i)));
  }
  std::vector<float> norms() override { return state_.norms; }

  std::vector<float> logits(const Dataset& examples) override {
    const Values theta = as_double(state_.parameters);
    std::vector<float> all;
    for (std::size_t i = 0; i < examples.size(); ++i)
      for (const double z : reference::logits(net_, theta, features(examples, i)))
        all.push_back(static_cast<float>(z));
    return all;
  }

  PerExample per_example(std::span<const std::uint32_t> examples, bool gradients) override {
    PerExample out;
    for (const std::uint32_t i : examples) {
      const ExampleGradient e = example(i);
      if (gradients)
        out.gradients.insert(out.gradients.end(), e.gradient.begin(), e.gradient.end());
      for (const double s : squared_norms(net_, e.gradient))
        out.squared_norms.push_back(static_cast<float>(s));
      out.losses.push_back(static_cast<float>(e.loss));
    }
    return out;
  }

  std::vector<std::uint32_t> sampled(std::uint64_t step) override {
    if (const auto* const allocation = std::get_if<Allocation>(&settings_.recipe.draw))
      return allocated_batch(*allocation, step);
    return poisson_batch(std::get<Poisson>(settings_.recipe.draw), step);
  }

  Diagnostics diagnostics() override {
    const Diagnostics d = diagnostics_;
    diagnostics_ = {};
    return d;
  }

  /// Returns the last sum of clipped gradients, [d], for comparisons.
  const Values& sum() const { return sum_; }

 protected:  // for engines of which one thing is wrong
  void take_step(const StepRecipe& recipe, std::uint64_t step, StepScalars s) {
    if (const auto* const poisson = std::get_if<Poisson>(&recipe.draw))
      batch_ = poisson_batch(*poisson, step);
    else if (const auto* const allocation = std::get_if<Allocation>(&recipe.draw))
      batch_ = allocated_batch(*allocation, step);
    else
      draw_candidates(std::get<Candidates>(recipe.draw).rule, step);

    sum_.assign(net_.parameter_count, 0.0);
    const auto* const transformed = std::get_if<TransformedGradient>(&recipe.contribution);
    if (const auto* const clipped = std::get_if<ClippedGradient>(&recipe.contribution))
      add_clipped(clipped->at(s.clip_norm));
    else if (transformed != nullptr)
      add_transformed(s.clip_norm);
    else
      add_directions(std::get<Candidates>(recipe.draw).rule, step);

    Values g = noisy_gradient(s, step);
    if (recipe.step_size) {
      double square = 0.0;
      for (const double x : g) square += x * x;
      const StepSizeSettings& r = *recipe.step_size;
      const double beta = std::fmax(r.weight / (1.0 + static_cast<double>(step % r.period)), 1.0);
      state_.step_size_sum += std::fmax(beta * square, r.min_growth);
      s.learning_rate = static_cast<float>(s.learning_rate / std::sqrt(state_.step_size_sum));
    }
    if (transformed != nullptr) restore(transformed->coordinates, s, g);
    update(recipe.optimizer, s, g, state_);
  }

  std::vector<std::uint32_t> poisson_batch(const Poisson& poisson, std::uint64_t step) const {
    const RandomStream s = stream(Stream::sampling, step);
    std::vector<std::uint32_t> drawn;
    for (std::uint32_t i = 0; i < train_.size(); ++i)
      if (is_drawn(s, i, poisson.threshold)) drawn.push_back(i);
    return drawn;
  }

  std::vector<std::uint32_t> allocated_batch(const Allocation& a, std::uint64_t step) const {
    const RandomStream s = stream(Stream::allocation, step / a.steps);
    std::vector<std::uint32_t> drawn;
    for (std::uint32_t i = 0; i < train_.size(); ++i)
      if (allocated_to(s, i, a.steps) == step % a.steps) drawn.push_back(i);
    return drawn;
  }

  /// Returns the estimate ghat = min(k max(n, g_L), K / b), with n the stored norm, at most C.
  double estimate(const ImportanceRule& rule, std::uint32_t i) const {
    const double n = std::fmin(state_.norms[i], rule.clip);
    return std::fmin(rule.multiple * std::fmax(n, rule.min_norm), 1.0 / rule.rate);
  }
  double norm_of(const ExampleGradient& e) const {
    double square = 0.0;
    for (const double s : squared_norms(net_, e.gradient)) square += s;
    return std::isfinite(square) ? std::sqrt(square) : 0.0;
  }

  virtual void draw_candidates(const ImportanceRule& rule, std::uint64_t step) {
    const RandomStream s = stream(Stream::sampling, step);
    batch_.clear();
    for (std::uint32_t i = 0; i < train_.size(); ++i)
      if (word(s, i) * 0x1p-32 < estimate(rule, i) * rule.rate) batch_.push_back(i);
  }

  virtual void add_directions(const ImportanceRule& rule, std::uint64_t step) {
    const RandomStream s = stream(Stream::acceptance, step);
    for (const std::uint32_t i : batch_) {
      const ExampleGradient e = weighted(i);
      const double norm = norm_of(e);
      const double n = std::fmin(norm, std::fmin(estimate(rule, i), rule.clip));
      const bool accepted = word(s, i) * 0x1p-32 < n / estimate(rule, i);
      state_.norms[i] = static_cast<float>(norm);
      if (accepted)
        for (std::size_t j = 0; j < sum_.size(); ++j) sum_[j] += e.gradient[j] / norm;
    }
  }

  void add_clipped(const ClipSettings& clip) {
    for (const std::uint32_t i : batch_) {
      const ExampleGradient e = example(i);
      const Values squares = squared_norms(net_, e.gradient);
      const Values factors = clip_factors(clip, squares);
      count(e, squares, factors);
      double total = 0.0;
      for (const double s : squares) total += s;
      if (!std::isfinite(total)) continue;
      for (const ParameterTensor& t : net_.parameters)
        for (std::size_t j = t.offset; j < t.offset + t.size; ++j)
          sum_[j] += weight(i) * factors[t.group] * e.gradient[j];
    }
  }

  void add_transformed(double max_norm) {
    transform();
    for (const std::uint32_t i : batch_) {
      const ExampleGradient e = weighted(i);
      Values w(e.gradient.size());
      double square = 0.0;
      for (std::size_t j = 0; j < w.size(); ++j) {
        w[j] = (e.gradient[j] - centre_[j]) / scale_[j];
        square += w[j] * w[j];
      }
      count(e, {square}, {std::fmin(1.0, max_norm / std::sqrt(square))});
      if (!std::isfinite(square)) continue;
      for (std::size_t j = 0; j < w.size(); ++j)
        sum_[j] += w[j] / std::fmax(1.0, std::sqrt(square) / max_norm);
    }
  }

  /// Transforms the sum g back, and updates mean and deviation.
  void restore(const CoordinateSettings& c, const StepScalars& scalars, Values& g) {
    const double std = scalars.noise_std;
    const double inverse_batch = scalars.inverse_batch;
    for (std::size_t j = 0; j < g.size(); ++j) {
      g[j] = scale_[j] * g[j] + centre_[j];
      const double m = c.beta1 * centre_[j] + (1.0 - c.beta1) * g[j];
      double v = (g[j] - m) * (g[j] - m) - std::pow(scale_[j] * std * inverse_batch, 2);
      if (!c.literal) v /= inverse_batch;
      v = std::fmin(std::fmax(v, c.min_variance), c.max_variance);
      const double s = state_.deviation[j];
      state_.mean[j] = static_cast<float>(m);
      state_.deviation[j] = static_cast<float>(std::sqrt(c.beta2 * s * s + (1.0 - c.beta2) * v));
    }
  }

  Values noisy_gradient(const StepScalars& s, std::uint64_t step) const {
    const RandomStream noise = stream(Stream::noise, step);
    Values g(net_.parameter_count);
    for (std::size_t j = 0; j < g.size(); ++j)
      g[j] =
          (sum_[j] + static_cast<double>(s.noise_std) * rounded_normal(noise, j)) * s.inverse_batch;
    return g;
  }

  /// Computes scale_j = sqrt(s_j) sqrt(sum_l s_l), and m, shortened to |m / scale| <= 4.
  void transform() {
    double sum = 0.0;
    for (const float s : state_.deviation) sum += s;
    scale_.assign(net_.parameter_count, 0.0);
    centre_.assign(net_.parameter_count, 0.0);
    double square = 0.0;
    for (std::size_t j = 0; j < scale_.size(); ++j) {
      scale_[j] = std::sqrt(state_.deviation[j]) * std::sqrt(sum);
      centre_[j] = state_.mean[j];
      square += std::pow(centre_[j] / scale_[j], 2);
    }
    if (square > 16.0)
      for (double& m : centre_) m *= 4.0 / std::sqrt(square);
  }

  static Values as_double(const std::vector<float>& v) { return {v.begin(), v.end()}; }

  RandomStream stream(Stream stream, std::uint64_t step) const {
    return {settings_.generator, settings_.key.key(), stream, step};
  }

  ExampleGradient example(std::uint32_t i) const {
    return gradient(net_, as_double(state_.parameters), features(train_, i), answer_of(train_, i));
  }

  double weight(std::uint32_t i) const {
    return settings_.class_weights.empty() ? 1.0 : settings_.class_weights[train_.labels[i]];
  }
  /// Returns loss and gradient of an example, multiplied by its weight.
  ExampleGradient weighted(std::uint32_t i) const {
    ExampleGradient e = example(i);
    for (double& x : e.gradient) x *= weight(i);
    return e;
  }

  void count(const ExampleGradient& e, const Values& squares, const Values& factors) {
    if (!settings_.diagnostics) return;
    double total = 0.0;
    for (const double s : squares) total += s;
    ++diagnostics_.examples;
    if (!std::isfinite(total)) {
      ++diagnostics_.non_finite;
      return;
    }
    diagnostics_.loss_units += std::llround(std::fmin(e.loss, kMaxTallied) / kTallyUnit);
    diagnostics_.norm_units += std::llround(std::fmin(std::sqrt(total), kMaxTallied) / kTallyUnit);
    bool clipped = false;
    for (const double f : factors) clipped = clipped || f < 1.0;
    diagnostics_.clipped += clipped ? 1 : 0;
  }

  Network net_;
  EngineSettings settings_;
  Dataset train_;
  TrainState state_;
  std::vector<std::uint32_t> batch_;
  Values sum_;
  Values scale_;
  Values centre_;
  Diagnostics diagnostics_;
};

inline std::unique_ptr<Engine> make_engine(const Network& network, const EngineSettings& settings) {
  return std::make_unique<ReferenceEngine>(network, settings);
}

}  // namespace cudp::reference
