#include "tests/support/recomputed_sums.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "privacy/verify/certificate.hpp"
#include "privacy/verify/transcript.hpp"
#include "runtime/base/safetensors.hpp"
#include "runtime/data/numbering.hpp"
#include "runtime/features/features.hpp"
#include "runtime/methods/adaclip.hpp"
#include "runtime/methods/dp_agd_method.hpp"
#include "runtime/methods/dpis.hpp"
#include "runtime/methods/linear_options.hpp"
#include "runtime/methods/risk_options.hpp"
#include "runtime/settings/settings.hpp"
#include "runtime/training/prepare.hpp"
#include "tests/support/coordinate_estimates.hpp"
#include "tests/support/reference/engine.hpp"
#include "tests/support/temporary_folder.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;
using reference::Values;

/// What a gradient in float32 may differ by from one in double, as a share of its terms.
constexpr double kGradientError = 2e-5;
/// Beyond, float32 may overflow where double does not.
constexpr double kLargest = 1e12;
/// Numbers of gradients that are made of one run, about.
constexpr double kMost = 2e7;

double norm_of(const Values& v) {
  double square = 0.0;
  for (const double x : v) square += x * x;
  return std::sqrt(square);
}

/// An example's gradient, and what float32 may make of it.
struct Measured {
  Values gradient;
  Values norms;   ///< of each group
  Values errors;  ///< of each group's gradient, in norm
  double norm = 0.0;
  double error = 0.0;
  bool sane = true;
};

/// Of adaclip and dpis, after so many steps.
struct Beside {
  CoordinateEstimates coordinates;
  Values norms, errors;
};

/// Gives the oracle's engine its numbers from outside.
class Oracle : public reference::ReferenceEngine {
 public:
  using ReferenceEngine::ReferenceEngine;

  void set_beside(const Beside& b) {
    state_.mean = b.coordinates.mean;
    state_.deviation = b.coordinates.deviation;
    transform();
  }
  const Values& scale() const { return scale_; }
  const Values& centre() const { return centre_; }
};

class Recomputer {
 public:
  Recomputer(const fs::path& run, const std::string& transcript)
      : certificate_(verify::read_certificate(content_of(run / "release/privacy.json"))),
        json_(nlohmann::json::parse(content_of(run / "release/privacy.json"))),
        records_(verify::decode(transcript)) {
    TrainConfig config;
    apply_settings(parse_settings(content_of(run / "release/config.toml"), "config.toml"), config);
    config.device = Device::cpu;
    config.feature_cache = "none";
    config.threads = 1;
    config.out = "nowhere";
    check_complete(config);
    Reporter quiet(true);
    experiment_ = prepare(config, quiet);
    can_ = show_what_was_released(run / "release/model.safetensors");
    const double epoch = std::round(certificate_.size / static_cast<double>(config.batch));
    steps_per_epoch_ = epoch >= 1.0 ? static_cast<std::uint64_t>(epoch) : 1;
    engine_ = std::make_unique<Oracle>(experiment_.network, EngineSettings{});
    std::uint64_t steps = 0;
    for (const verify::Record& r : records_) steps += std::holds_alternative<verify::Update>(r);
    const double each =
        2.0 * static_cast<double>(parameters()) * std::fmax(certificate_.expected_batch, 1.0);
    every_ = static_cast<std::uint64_t>(std::ceil(each * static_cast<double>(steps) / kMost));
    every_ = std::max<std::uint64_t>(every_, 1);
  }

  Recomputed run() {
    if (!can_) {
      ++found_.left_out;
      return found_;
    }
    for (const verify::Record& record : records_) {
      std::visit([this](const auto& r) { see(r); }, record);
      if (!found_.fault.empty()) break;
    }
    return found_;
  }

 private:
  const Network& net() const { return experiment_.network; }
  const TrainConfig& config() const { return experiment_.config; }
  const Dataset& train() const { return experiment_.data.train; }
  std::size_t parameters() const { return net().parameter_count; }
  bool is(const char* method) const { return certificate_.method == method; }

  void fault(const std::string& what) {
    if (found_.fault.empty()) found_.fault = "oracle: " + what;
  }

  bool show_what_was_released(const fs::path& model) {
    FeatureSettings features = feature_settings(config());
    if (!rest_on_release(features)) return true;
    if (!fs::exists(model)) return false;
    features.dimensions = net().input.size();
    const TensorFile file = decode_safetensors(content_of(model), "model");
    show_features(experiment_, read_release(file, features, "model"));
    return true;
  }

  // The transcript.

  void see(const verify::Begin& b) {
    begin_ = b;
    if (const std::size_t n = Numbering(train()).count(); b.examples != n)
      return fault(fmt::format("expected {} examples, found {}", n, b.examples));
    iteration_ = b.step;
    batch_.reset();
    counts_.clear();
    if (const auto known = beside_.find(b.step); known != beside_.end()) now_ = known->second;
    if (b.step > 0) return;
    const auto& options = config().of<AdaClipOptions>();
    now_ = {};
    now_.coordinates = CoordinateEstimates(
        parameters(), static_cast<float>(std::sqrt(options.min_variance * options.max_variance)));
  }

  void see(const verify::State& s) { state_ = {s.parameters, s.moment1, s.moment2, s.average}; }

  void see(const verify::Batch& b) {
    batch_ = b;
    // Examples are drawn by their numbers in the file.
    const std::size_t left = Numbering(train()).to_places(batch_->examples);
    if (left != b.examples.size())
      return fault(
          fmt::format("step {}: {} held-out rows were drawn", b.step, b.examples.size() - left));
    if (is("dpis")) draw_candidates(*batch_);
  }

  void see(const verify::Release& r) {
    switch (static_cast<Stream>(r.stream)) {
      case Stream::noise:
        if (is("dp-agd")) return hold_descent(r);
        if (is("outpert") || is("objpert")) return hold_minimum(r);
        released_ = r;
        return is("dpis") ? hold_directions(r) : hold_sum(r);
      case Stream::clipped_count:
        return hold_count(r);
      case Stream::norm_total:
        return hold_norms(r, true);
      case Stream::largest_norms:
        return hold_norms(r, false);
      case Stream::selection:
        if (is("dp-agd")) hold_losses(r);
        return;
      default:
        return;
    }
  }

  void see(const verify::Update& u) {
    if (is("adaclip")) follow_coordinates(u);
    state_ = {u.parameters, u.moment1, u.moment2, u.average};
    iteration_ = u.step + 1;
    beside_[iteration_] = now_;
  }

  // Gradients.

  Values gradient(std::uint32_t i, double answer, const Values& theta) const {
    return reference::gradient(net(), theta, reference::features(train(), i), answer).gradient;
  }
  double answer(std::uint32_t i) const { return reference::answer_of(train(), i); }
  /// Another label than the example's own, or a target far from it.
  double other_answer(std::uint32_t i) const {
    if (train().has_targets()) return answer(i) + 1.0;
    return (train().labels[i] + 1) % net().classes;
  }
  Values theta() const { return {state_.parameters.begin(), state_.parameters.end()}; }

  Measured measure(std::uint32_t i, const Values& theta) {
    ++found_.examples;
    Measured m;
    m.gradient = gradient(i, answer(i), theta);
    // As large as the terms of the gradient, which nearly cancel where the label is the prediction.
    const Values other = gradient(i, other_answer(i), theta);
    Values squares = reference::squared_norms(net(), m.gradient);
    const Values of_other = reference::squared_norms(net(), other);
    double square = 0.0;
    double error = 0.0;
    for (std::size_t g = 0; g < squares.size(); ++g) {
      const double size = std::sqrt(std::fmax(squares[g], of_other[g]));
      m.norms.push_back(std::sqrt(squares[g]));
      m.errors.push_back(kGradientError * size);
      square += squares[g];
      error += m.errors[g] * m.errors[g];
      m.sane = m.sane && size < kLargest;
    }
    m.norm = std::sqrt(square);
    m.error = std::sqrt(error);
    return m;
  }

  /// What an example counts: its class's weight over the largest.
  double weight(std::uint32_t i) const {
    const std::vector<double>& all = config().class_weights;
    if (all.empty()) return 1.0;
    return all.at(train().labels[i]) / *std::ranges::max_element(all);
  }

  /// The gradient of the weighted loss.
  Measured measure_weighted(std::uint32_t i, const Values& theta) {
    Measured m = measure(i, theta);
    const double w = weight(i);
    for (Values* const all : {&m.gradient, &m.norms, &m.errors})
      for (double& x : *all) x *= w;
    m.norm *= w;
    m.error *= w;
    return m;
  }

  bool is_sane() const {
    return std::ranges::all_of(
        state_.parameters, [](float x) { return std::fabs(static_cast<double>(x)) < kLargest; });
  }

  /// What an example adds, factor by factor; what it may be off by goes to `*allowed`.
  void add_clipped(const Measured& m, const Values& factors, double sensitivity,
                   const std::string& where, Values& sum, double* allowed) {
    double square = 0.0;
    for (const ParameterTensor& t : net().parameters)
      for (std::size_t j = t.offset; j < t.offset + t.size; ++j)
        sum[j] += factors[static_cast<std::size_t>(t.group)] * m.gradient[j];
    for (std::size_t g = 0; g < factors.size(); ++g) {
      square += std::pow(factors[g] * m.norms[g], 2);
      *allowed += 2.0 * factors[g] * m.errors[g];
    }
    hold_length(std::sqrt(square), sensitivity, where);
  }

  void hold_length(double length, double sensitivity, const std::string& where) {
    found_.longest = std::fmax(found_.longest, length / sensitivity);
    if (!(length <= sensitivity))
      fault(fmt::format("{}: an example adds {:.9g}, the certificate's sensitivity is {:.9g}",
                        where, length, sensitivity));
  }

  /// |sum - r.sums| <= allowed and the grid's roundings; `again` gives the sum that the oracle
  /// finds a little beside the parameters: where they meet a kink, float32 may be on its other
  /// side.
  template <class Again>
  void hold_distance(const Values& sum, const verify::Release& r, double allowed, std::size_t n,
                     const std::string& where, const Again& again) {
    if (sum.size() != r.sums.size())
      return fault(
          fmt::format("{}: expected {} numbers, found {}", where, sum.size(), r.sums.size()));
    ++found_.sums;
    const auto distance = [&](const Values& of) {
      double square = 0.0;
      for (std::size_t j = 0; j < of.size(); ++j)
        square += std::pow(of[j] - static_cast<double>(r.sums[j]) * r.grid, 2);
      return std::sqrt(square);
    };
    allowed += r.grid * std::sqrt(static_cast<double>(sum.size() * n));
    const double found = distance(sum);
    if (!(found <= allowed)) {
      const Values beside = again();
      double moved = 0.0;
      for (std::size_t j = 0; j < sum.size(); ++j) moved += std::pow(beside[j] - sum[j], 2);
      allowed += 2.0 * std::sqrt(moved);
    }
    found_.error = std::fmax(found_.error, found > 0.0 ? found / allowed : 0.0);
    if (!(found <= allowed))
      fault(
          fmt::format("{}: the sum of {} examples is {:.6g} from the oracle's, expected {:.6g} at "
                      "most; its length is {:.6g}",
                      where, n, found, allowed, norm_of(sum)));
  }

  Values beside(const Values& theta) const {
    std::mt19937 random(7);
    Values moved = theta;
    for (double& x : moved) x *= 1.0 + (random() % 2 == 0 ? 1e-6 : -1e-6);
    return moved;
  }

  // Sums of clipped gradients.

  /// C of a step: of dpsgd-quantile it follows from what was released.
  double clip_of(const verify::Release& r) const {
    if (!certificate_.quantile) return config().clip;
    return r.noise_std / certificate_.quantile->gradient_noise /
           (certificate_.sensitivity / certificate_.clip);
  }

  std::string at(const verify::Release& r) const { return fmt::format("step {}", r.step); }

  void hold_sum(const verify::Release& r) {
    if (!batch_ || batch_->step != r.step) return;
    if (r.step % every_ != 0 && !certificate_.quantile) return;
    if (!is_sane()) return leave_out();
    if (is("adaclip")) return hold_transformed(r);
    const double clip = clip_of(r);
    const double sensitivity =
        certificate_.quantile ? clip * certificate_.sensitivity / certificate_.clip * (1.0 + 1e-6)
                              : certificate_.sensitivity;
    const ClipSettings settings{.kind = config().clipping, .max_norm = static_cast<float>(clip)};
    // The weight comes behind the clipping, which counts the gradient without it.
    const auto factors_of = [&](const Measured& m, std::uint32_t i) {
      Values squares;
      for (const double n : m.norms) squares.push_back(n * n);
      Values factors = is("norm-bound") ? Values(squares.size(), 1.0)
                                        : reference::clip_factors(settings, squares);
      for (double& f : factors) f *= weight(i);
      return factors;
    };
    const Values parameters = theta();
    Values sum(parameters.size(), 0.0);
    double allowed = 1e-6 * clip * static_cast<double>(batch_->examples.size());
    double below_low = 0.0;
    double below_high = 0.0;
    for (const std::uint32_t i : batch_->examples) {
      const Measured m = measure(i, parameters);
      if (!m.sane) return leave_out();
      add_clipped(m, factors_of(m, i), sensitivity, at(r), sum, &allowed);
      below_low += m.norm + 2.0 * m.error < clip * (1.0 - 1e-5) ? 1.0 : 0.0;
      below_high += m.norm - 2.0 * m.error <= clip * (1.0 + 1e-5) ? 1.0 : 0.0;
    }
    const double half = 0.5 * static_cast<double>(batch_->examples.size());
    counts_[r.step] = {below_low - half, below_high - half};
    hold_distance(sum, r, allowed, batch_->examples.size(), at(r), [&] {
      Values again(sum.size(), 0.0);
      const Values moved = beside(parameters);
      double unused = 0.0;
      for (const std::uint32_t i : batch_->examples) {
        const Measured m = measure(i, moved);
        add_clipped(m, factors_of(m, i), INFINITY, at(r), again, &unused);
      }
      return again;
    });
  }

  void leave_out() { ++found_.left_out; }

  /// How many gradients of the batch were not clipped, less half the batch.
  void hold_count(const verify::Release& r) {
    const auto known = counts_.find(r.step);
    if (known == counts_.end()) return;
    const auto [low, high] = known->second;
    const double count = static_cast<double>(r.sums.at(0)) * r.grid;
    if (!(count >= low && count <= high))
      fault(fmt::format("{}: expected a count of {} to {}, found {}", at(r), low, high, count));
  }

  // adaclip

  void hold_transformed(const verify::Release& r) {
    engine_->set_beside(now_);
    const Values& scale = engine_->scale();
    const Values& centre = engine_->centre();
    const CoordinateErrors off = now_.coordinates.errors(scale, centre);
    const auto add = [&](const Measured& m, const Values& parameters, std::uint32_t i, Values& sum,
                         double* allowed) {
      Values other = gradient(i, other_answer(i), parameters);
      for (double& x : other) x *= weight(i);
      Values w(scale.size());
      double error = 0.0;
      double shift = 0.0;
      for (std::size_t j = 0; j < w.size(); ++j) {
        w[j] = (m.gradient[j] - centre[j]) / scale[j];
        error += std::pow(
            (kGradientError * (std::fabs(m.gradient[j]) + std::fabs(other[j])) + off.centres[j]) /
                    scale[j] +
                std::fabs(w[j]) * off.scale_shares[j],
            2);
        shift += std::pow(centre[j] / scale[j], 2);
      }
      const double factor = 1.0 / std::fmax(1.0, norm_of(w));
      // The norm counts what cancelled (dense_square in kernels/contribution/coordinates.hpp).
      *allowed +=
          2.0 * factor * std::sqrt(error) + 1e-3 * factor * (norm_of(w) + 2.0 * std::sqrt(shift));
      for (std::size_t j = 0; j < w.size(); ++j) sum[j] += factor * w[j];
      hold_length(factor * norm_of(w), certificate_.sensitivity, at(r));
    };
    const auto sum_at = [&](const Values& parameters, double* allowed) {
      Values sum(scale.size(), 0.0);
      for (const std::uint32_t i : batch_->examples)
        add(measure_weighted(i, parameters), parameters, i, sum, allowed);
      return sum;
    };
    double allowed = 1e-6 * static_cast<double>(batch_->examples.size());
    const Values parameters = theta();
    const Values sum = sum_at(parameters, &allowed);
    if (!(norm_of(sum) < kLargest)) return leave_out();
    hold_distance(sum, r, allowed, batch_->examples.size(), at(r), [&] {
      double unused = 0.0;
      return sum_at(beside(parameters), &unused);
    });
  }

  /// m and s follow from what was released, and so do the parameters.
  void follow_coordinates(const verify::Update& u) {
    if (!released_ || released_->step != u.step) return;
    const auto& o = config().of<AdaClipOptions>();
    engine_->set_beside(now_);
    const Values& scale = engine_->scale();
    const Values& centre = engine_->centre();
    const CoordinateErrors off = now_.coordinates.errors(scale, centre);
    Values g(scale.size());
    Values errors(scale.size());
    for (std::size_t j = 0; j < g.size(); ++j) {
      const double scaled = scale[j] * released_->values[j] * u.inverse_batch;
      g[j] = scaled + centre[j];
      errors[j] = std::fabs(scaled) * (off.scale_shares[j] + 2.0 * kRounding) + off.centres[j] +
                  kRounding * std::fabs(g[j]);
    }
    hold_step(u, g, errors);
    now_.coordinates.follow({.beta1 = o.beta1,
                             .beta2 = o.beta2,
                             .min_variance = o.min_variance,
                             .max_variance = o.max_variance,
                             .noise = released_->noise_std * u.inverse_batch,
                             .examples = o.literal ? 1.0 : 1.0 / u.inverse_batch},
                            scale, centre, off, g, errors);
  }

  /// The parameters are the optimizer's after gradient g, which float32 may have `errors` of.
  void hold_step(const verify::Update& u, const Values& g, const Values& errors) {
    OptimizerSettings o;
    o.kind = config().optimizer;
    o.momentum = static_cast<float>(u.momentum);
    o.beta1 = static_cast<float>(u.beta1);
    o.beta2 = static_cast<float>(u.beta2);
    o.epsilon = static_cast<float>(u.epsilon);
    o.weight_decay = static_cast<float>(u.weight_decay);
    const StepScalars s{.learning_rate = static_cast<float>(u.learning_rate),
                        .noise_std = 0.0f,
                        .inverse_batch = 1.0f,
                        .bias1 = static_cast<float>(u.bias1),
                        .bias2 = static_cast<float>(u.bias2),
                        .ema_decay = static_cast<float>(u.ema_decay)};
    TrainState expected;
    expected.parameters = state_.parameters;
    expected.moment1 = state_.moment1;
    expected.moment2 = state_.moment2;
    expected.average = state_.average;
    const auto size_of = [](const std::vector<float>& v, std::size_t j) {
      return v.empty() ? 0.0 : std::fabs(static_cast<double>(v[j]));
    };
    reference::update(o, s, g, expected);
    const bool adam = o.kind == OptimizerKind::adam || o.kind == OptimizerKind::adamw;
    for (std::size_t j = 0; j < g.size(); ++j) {
      const double before = size_of(state_.parameters, j);
      const double after = static_cast<double>(expected.parameters[j]);
      const double moved = std::fabs(after - static_cast<double>(state_.parameters[j])) /
                           std::fmax(u.learning_rate, 1e-30);
      // Sizes of the terms, which may cancel.
      const double terms =
          adam ? 2.0 + moved
               : 2.0 * (std::fabs(g[j]) + size_of(state_.moment1, j) + u.weight_decay * before);
      // A step of momentum and Nesterov takes g twice at most; one of Adam divides by its root.
      double of_gradient = 2.0 * errors[j];
      if (adam) {
        const double root = std::sqrt(size_of(expected.moment2, j) * u.bias2);
        const double squares =
            (1.0 - u.beta2) * u.bias2 * errors[j] * (2.0 * std::fabs(g[j]) + errors[j]);
        of_gradient =
            ((1.0 - u.beta1) * u.bias1 * errors[j] + moved * squares / std::fmax(root, 1e-30)) /
            (root + u.epsilon);
      }
      const double allowed =
          1e-6 * (before + std::fabs(after)) + u.learning_rate * (1e-4 * terms + of_gradient);
      if (!(std::fabs(static_cast<double>(u.parameters.at(j)) - after) <= allowed) &&
          std::isfinite(after) && std::fabs(after) < kLargest)
        return fault(
            fmt::format("step {}, parameter {}: expected {:.9g} within {:.3g}, found {:.9g}",
                        u.step, j, after, allowed, u.parameters[j]));
    }
  }

  // dpis

  /// C and b / K of an epoch, from its released sum of norms.
  std::optional<ImportanceRule> rule_of(std::uint64_t step) const {
    const auto known = totals_.find(step / steps_per_epoch_);
    if (known == totals_.end()) return std::nullopt;
    const auto& options = config().of<DpisOptions>();
    const auto [clip, measured] = known->second;
    const double least = certificate_.expected_batch * clip * (1.0 + 1e-6);
    const double total = std::fmin(std::fmax(measured, least), certificate_.size * clip);
    return ImportanceRule{.clip = clip,
                          .multiple = options.multiple,
                          .min_norm = options.floor * clip,
                          .rate = certificate_.expected_batch / total};
  }

  bool measure_all() {
    now_.norms.clear();
    now_.errors.clear();
    if (!is_sane()) return false;
    const Values parameters = theta();
    for (std::uint32_t i = 0; i < train().size(); ++i) {
      const Measured m = measure_weighted(i, parameters);
      if (!m.sane) {
        now_.norms.clear();
        return false;
      }
      now_.norms.push_back(m.norm);
      now_.errors.push_back(2.0 * m.error + 1e-6 * m.norm);
    }
    return true;
  }

  /// Sums of all norms, cut: at the parameters now, or as each was last seen.
  void hold_norms(const verify::Release& r, bool now) {
    if (now && !measure_all()) return leave_out();
    if (now) totals_[r.step] = {r.sensitivity, r.values.at(0)};
    if (now_.norms.empty()) return leave_out();
    ++found_.sums;
    double expected = 0.0;
    double allowed = r.grid * static_cast<double>(now_.norms.size());
    for (std::size_t i = 0; i < now_.norms.size(); ++i) {
      expected += std::fmin(now_.norms[i], r.sensitivity);
      allowed += now_.errors[i];
    }
    const double found = static_cast<double>(r.sums.at(0)) * r.grid;
    if (!(std::fabs(found - expected) <= allowed))
      fault(fmt::format("epoch {}: norms add up to {:.9g} within {:.3g}, found {:.9g}", r.step,
                        expected, allowed, found));
  }

  RandomStream stream(Stream which, std::uint64_t step) const {
    RandomKey key{};
    std::ranges::copy(begin_->key, std::begin(key.words));
    return {begin_->generator == "philox" ? Generator::philox : Generator::chacha20, key, which,
            step};
  }

  /// What an example is a candidate by, and the relative error of that.
  static double estimate(const ImportanceRule& r, double norm) {
    return std::fmin(r.multiple * std::fmax(std::fmin(norm, r.clip), r.min_norm), 1.0 / r.rate);
  }
  double share_of_error(const ImportanceRule& r, std::size_t i) const {
    return now_.errors[i] / std::fmax(now_.norms[i], r.min_norm) + 1e-6;
  }

  void draw_candidates(const verify::Batch& b) {
    if (b.step % steps_per_epoch_ == 0) measure_all();
    const auto rule = rule_of(b.step);
    if (!rule || now_.norms.empty()) return;
    const RandomStream words = stream(Stream::sampling, b.step);
    for (std::uint32_t i = 0; i < now_.norms.size(); ++i) {
      const double q = estimate(*rule, now_.norms[i]) * rule->rate;
      const std::uint32_t number = train().numbers.empty() ? i : train().numbers[i];
      const double u = reference::word(words, number) * 0x1p-32;
      if (std::fabs(u - q) <= q * share_of_error(*rule, i) + 0x1p-31) continue;
      if ((u < q) == std::ranges::binary_search(b.examples, i)) continue;
      return fault(
          fmt::format("step {}: example {} is {} candidate with probability {:.9g}, and {} "
                      "drawn",
                      b.step, i, u < q ? "a" : "no", q, u < q ? "not" : "was"));
    }
  }

  void hold_directions(const verify::Release& r) {
    const auto rule = rule_of(r.step);
    if (!batch_ || batch_->step != r.step) return;
    if (!rule || now_.norms.empty() || !is_sane()) {
      now_.norms.clear();
      return leave_out();
    }
    const RandomStream words = stream(Stream::acceptance, r.step);
    const Values parameters = theta();
    Values sum(parameters.size(), 0.0);
    double allowed = 1e-6 * static_cast<double>(batch_->examples.size());
    for (const std::uint32_t i : batch_->examples) {
      const Measured m = measure_weighted(i, parameters);
      if (!m.sane) {
        now_.norms.clear();
        return leave_out();
      }
      const double of = estimate(*rule, now_.norms[i]);
      const double q = std::fmin(std::fmin(m.norm, rule->clip), of) / of;
      const double u = reference::word(words, i) * 0x1p-32;
      const double share = m.norm > 0.0 ? 2.0 * m.error / m.norm : 0.0;
      const double doubt = q * (share + share_of_error(*rule, i)) + 0x1p-30;
      if (std::fabs(u - q) <= doubt || m.norm < 0x1p-38)
        allowed += m.norm > 0.0 ? 1.0 : 0.0;
      else if (u < q)
        allowed += 2.0 * m.error / m.norm;
      if (u < q && m.norm > 0.0)
        for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += m.gradient[j] / m.norm;
      now_.norms[i] = m.norm;
      now_.errors[i] = 2.0 * m.error + 1e-6 * m.norm;
    }
    hold_distance(sum, r, allowed, batch_->examples.size(), at(r), [&] { return sum; });
  }

  // dp-agd

  /// Into the batch of this iteration, which the checker holds against its words.
  bool is_drawn(std::uint32_t i) const {
    return batch_ && std::ranges::binary_search(batch_->examples, i);
  }

  void hold_descent(const verify::Release& r) {
    if (!is_sane()) return leave_out();
    const bool all = config().of<DpAgdOptions>().mini_batch == 0;
    const Values parameters = theta();
    std::size_t n = 0;
    const auto sum_at = [&](const Values& at_parameters, double* allowed) {
      Values sum(at_parameters.size(), 0.0);
      n = 0;
      for (std::uint32_t i = 0; i < train().size(); ++i) {
        if (!all && !is_drawn(i)) continue;
        ++n;
        const Measured m = measure_weighted(i, at_parameters);
        *allowed += 1e-6 * config().clip;
        if (m.norm == 0.0) continue;
        add_clipped(m, {std::fmin(1.0, config().clip / m.norm)}, r.sensitivity,
                    fmt::format("release {}", r.step), sum, allowed);
      }
      return sum;
    };
    double allowed = 0.0;
    const Values sum = sum_at(parameters, &allowed);
    // Its grid may be finer than the one that was summed on (linear_grid).
    allowed += 0x1p-22 * config().clip * static_cast<double>(n);
    hold_distance(sum, r, allowed, n, fmt::format("release {}", r.step), [&] {
      double unused = 0.0;
      return sum_at(beside(parameters), &unused);
    });
  }

  /// The first score of a line search is that of no step: the clipped losses at the parameters.
  void hold_losses(const verify::Release& r) {
    if (!is_sane() || r.scores.empty()) return leave_out();
    const double most = config().of<LinearOptions>().loss_clip;
    const Values parameters = theta();
    const auto& options = config().of<DpAgdOptions>();
    double expected = 0.0;
    std::size_t n = 0;
    for (std::uint32_t i = 0; i < train().size(); ++i) {
      if (options.mini_batch > 0 && !is_drawn(i)) continue;
      ++n;
      const Values z = reference::logits(net(), parameters, reference::features(train(), i));
      const double loss = reference::loss(net().spec.loss, z, train().labels[i], nullptr);
      expected += std::fmin(weight(i) * loss, most);
    }
    ++found_.sums;
    const double allowed = (1e-5 * expected + 1e-6 * most * static_cast<double>(n));
    if (!(std::fabs(r.scores[0] - expected) <= allowed))
      fault(fmt::format("choice {}: clipped losses add up to {:.9g} within {:.3g}, found {:.9g}",
                        r.step, expected, allowed, r.scores[0]));
  }

  // outpert, objpert

  /// Derivative of a margin's loss.
  double margin_derivative(double m) const {
    if (net().spec.loss != Loss::hinge) return -1.0 / (1.0 + std::exp(m));
    const double h = config().of<RiskOptions>().huber;
    return -std::clamp((1.0 + h - m) / (2.0 * h), 0.0, 1.0);
  }

  /// At what noise is added to, the objective's gradient is as small as the noise allows for:
  /// sum of phi'(v w) v, v = y (x, 1) / max(R, |(x, 1)|), with the regulariser's, and b of objpert.
  void hold_minimum(const verify::Release& r) {
    const auto& options = config().of<RiskOptions>();
    Values w;
    for (const std::int64_t s : r.sums) w.push_back(static_cast<double>(s) * r.grid);
    if (is("objpert")) w = r.scores;
    const std::size_t d = w.size();
    if (d != parameters())
      return fault(fmt::format("a minimum of {} numbers, found {}", parameters(), d));
    const double regulariser = json_.at("regulariser").get<double>();
    // An example's gradient is no longer than 1, and both minima are as exact as the solver's
    // bound.
    const double moves = (1.0 + 2.0 * options.solver_tolerance) / regulariser +
                         std::sqrt(static_cast<double>(d)) * r.grid;
    if (is("outpert") && !(std::fabs(r.sensitivity - moves) <= 1e-9 * moves))
      return fault(fmt::format("minimum: expected a sensitivity of {:.12g}, found {:.12g}", moves,
                               r.sensitivity));
    Values gradient(d, 0.0);
    for (std::uint32_t i = 0; i < train().size(); ++i) {
      Values v = reference::features(train(), i).values;
      v.push_back(1.0);
      const double scale =
          (train().labels[i] != 0 ? 1.0 : -1.0) / std::fmax(options.max_norm, norm_of(v));
      double margin = 0.0;
      for (std::size_t j = 0; j < d; ++j) margin += scale * v[j] * w[j];
      const double c = weight(i) * margin_derivative(margin);
      if (!std::isfinite(scale)) continue;
      for (std::size_t j = 0; j < d; ++j) gradient[j] += c * scale * v[j];
      hold_length(std::fabs(c * scale) * norm_of(v), 1.0 + 1e-12, "minimum");
    }
    // The minimum was rounded to the grid, which the curvature shows in the gradient.
    const auto examples = static_cast<double>(train().size());
    const double curvature = net().spec.loss == Loss::hinge ? 0.5 / options.huber : 0.25;
    double allowed =
        options.solver_tolerance + 1e-9 * examples +
        0.5 * (curvature * examples + regulariser) * r.grid * std::sqrt(static_cast<double>(d));
    for (std::size_t j = 0; j < d; ++j) gradient[j] += regulariser * w[j];
    if (is("objpert")) allowed += hold_objective_noise(r, w, gradient);
    ++found_.sums;
    if (!(norm_of(gradient) <= allowed))
      fault(fmt::format(
          "minimum: the objective's gradient has length {:.6g}, expected {:.3g} at most",
          norm_of(gradient), allowed));
  }

  /// Adds b to the gradient, holds what left against the second noise, and returns what float32
  /// may make of b.
  double hold_objective_noise(const verify::Release& r, const Values& w, Values& gradient) {
    const double std_of_b = json_.at("noise_std").get<double>();
    const double std_of_output = json_.at("output_noise_std").get<double>();
    const double unscaled = 1.0 / std::fmax(config().of<RiskOptions>().max_norm, 1.0);
    double allowed = 0.0;
    for (std::size_t j = 0; j < w.size(); ++j) {
      const double b = std_of_b * reference::normal(stream(Stream::noise, 0), j);
      gradient[j] += b;
      allowed += 1e-5 * (std::fabs(b) + std_of_b);
      const double z = reference::normal(stream(Stream::noise, 1), j);
      const double left = unscaled * (w[j] + std_of_output * z);
      const double off = 1e-6 * std::fabs(unscaled * w[j]) +
                         1e-5 * unscaled * std_of_output * (1.0 + std::fabs(z));
      if (!(std::fabs(r.values.at(j) - left) <= off))
        fault(
            fmt::format("minimum, number {}: expected {:.9g}, found {:.9g}", j, left, r.values[j]));
    }
    return allowed;
  }

  verify::Certificate certificate_;
  nlohmann::json json_;
  std::vector<verify::Record> records_;
  Experiment experiment_;
  bool can_ = false;
  std::unique_ptr<Oracle> engine_;
  std::uint64_t steps_per_epoch_ = 1;
  std::uint64_t every_ = 1;  ///< how many steps to one that is made again

  std::optional<verify::Begin> begin_;
  verify::State state_;
  std::uint64_t iteration_ = 0;
  std::optional<verify::Batch> batch_;
  std::optional<verify::Release> released_;
  Beside now_;
  std::map<std::uint64_t, Beside> beside_;                     ///< by steps done
  std::map<std::uint64_t, std::pair<double, double>> counts_;  ///< least and most, by step
  std::map<std::uint64_t, std::pair<double, double>> totals_;  ///< C and K' by epoch
  Recomputed found_;
};

}  // namespace

Recomputed recompute_sums(const fs::path& run, const std::string& transcript) {
  return Recomputer(run, transcript).run();
}

}  // namespace cudp
