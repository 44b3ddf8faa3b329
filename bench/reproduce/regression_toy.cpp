#include "bench/reproduce/regression_toy.hpp"

#include <cmath>
#include <vector>

#include "kernels/contribution/coordinates_math.hpp"
#include "kernels/step/adaclip_math.hpp"
#include "runtime/base/random_key.hpp"
#include "runtime/base/random_numbers.hpp"

namespace cudp {
namespace {

constexpr std::size_t kPoints = 1000;
constexpr std::uint64_t kSteps = 10 * kPoints;
constexpr StepScalars kScalars = {.learning_rate = 0.01f,
                                  .noise_std = 0.1f,  // equal to sigma, as the clipping norm is 1
                                  .inverse_batch = 1.0f,
                                  .bias1 = 1.0f,
                                  .bias2 = 1.0f,
                                  .ema_decay = 0.0f,
                                  .clip_norm = 1.0f};

/// A training of the regression toy. The gradient of a point x is g = theta - x.
class Toy {
 public:
  explicit Toy(const RegressionToy& toy)
      : d_(static_cast<std::size_t>(toy.dimensions)),
        adaclip_(toy.method == ToyMethod::adaclip),
        settings_{.max_variance = toy.max_variance},
        theta_(d_, 0.0f),
        mean_(d_, 0.0f),
        deviation_(d_, std::sqrt(settings_.min_variance * settings_.max_variance)),
        scale_(d_, 1.0f) {}

  void step(const std::vector<float>& signs, const std::vector<float>& noise) {
    choose_scale();
    std::vector<float> sum(d_, 0.0f);
    for (const float sign : signs) add_clipped(sign, sum);
    for (std::size_t j = 0; j < d_; ++j) {
      const float g = restored_gradient<ScalarLanes>(
          kScalars, sum[j] + kScalars.noise_std * noise[j], scale_[j], centre(j));
      if (adaclip_) {
        mean_[j] = centre(j);
        update_moments<ScalarLanes>(settings_, kScalars, g, scale_[j], mean_[j], deviation_[j]);
      }
      theta_[j] -= kScalars.learning_rate * g;
    }
  }

  double excess() const {  // theta* = 0
    double square = 0.0;
    for (const float t : theta_) square += static_cast<double>(t) * static_cast<double>(t);
    return 0.5 * square;
  }

 private:
  float centre(std::size_t j) const { return shrink_ * mean_[j]; }

  void choose_scale() {
    if (!adaclip_) return;
    double deviations = 0.0;
    double ratios = 0.0;
    for (std::size_t j = 0; j < d_; ++j) {
      const double m = mean_[j];
      deviations += static_cast<double>(deviation_[j]);
      ratios += m * m / static_cast<double>(deviation_[j]);
    }
    const CoordinateScale c = coordinate_scale(deviations, ratios);
    shrink_ = c.shrink;
    for (std::size_t j = 0; j < d_; ++j) scale_[j] = std::sqrt(deviation_[j]) * c.root;
  }

  void add_clipped(float sign, std::vector<float>& sum) const {
    double square = 0.0;
    std::vector<float> w(d_);
    for (std::size_t j = 0; j < d_; ++j) {
      w[j] = (theta_[j] - (j == 0 ? sign : 0.0f) - centre(j)) / scale_[j];
      square += static_cast<double>(w[j]) * static_cast<double>(w[j]);
    }
    const auto factor = static_cast<float>(1.0 / std::fmax(1.0, std::sqrt(square)));
    for (std::size_t j = 0; j < d_; ++j) sum[j] += factor * w[j];
  }

  std::size_t d_;
  bool adaclip_;
  CoordinateSettings settings_;
  std::vector<float> theta_;
  std::vector<float> mean_;       ///< m
  std::vector<float> deviation_;  ///< s
  std::vector<float> scale_;      ///< always 1 for DP-SGD
  float shrink_ = 1.0f;
};

}  // namespace

double regression_excess(const RegressionToy& toy, std::uint64_t seed) {
  const SecretKey key(key_from_seed(seed));
  Toy state(toy);
  constexpr auto kThreshold = static_cast<std::uint64_t>(0x1p32 / kPoints);
  for (std::uint64_t t = 0; t < kSteps; ++t) {
    const auto words = random_words({Generator::philox, key.key(), Stream::sampling, t}, kPoints);
    std::vector<float> signs;
    for (std::size_t i = 0; i < kPoints; ++i)
      if (words[i] < kThreshold) signs.push_back(i < kPoints / 2 ? 1.0f : -1.0f);
    state.step(signs, normal_numbers({Generator::philox, key.key(), Stream::noise, t},
                                     static_cast<std::size_t>(toy.dimensions)));
  }
  return state.excess();
}

}  // namespace cudp
