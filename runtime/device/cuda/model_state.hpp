#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/step/update.hpp"
#include "models/freeze.hpp"
#include "models/model.hpp"
#include "runtime/base/error.hpp"
#include "runtime/device/cuda/buffer.hpp"
#include "runtime/device/cuda/coordinates.hpp"
#include "runtime/device/engine.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// The parameters and the state of the optimizer, in device memory: everything that a training
/// changes except the stored gradient norms.
class DeviceModelState {
 public:
  /// Allocates the arrays that training with this recipe needs: which ones depends on its optimizer
  /// and on how it clips gradients. gpu: the device.
  DeviceModelState(Gpu& gpu, const Network& network, const StepRecipe& recipe)
      : size_(network.parameter_count),
        parameters_(gpu, count_of_all_parameters(network)),
        moment1_(gpu, has_first_moment(recipe.optimizer.kind) ? network.parameter_count : 0),
        moment2_(gpu, has_second_moment(recipe.optimizer.kind) ? network.parameter_count : 0),
        average_(gpu, recipe.optimizer.keep_average ? network.parameter_count : 0),
        coordinates_(gpu, transforms(recipe) ? network.parameter_count : 0, network.groups),
        step_size_sum_(gpu, 1),
        rates_(gpu, has_own_rates(network) ? network.parameter_count : 0) {
    parameters_.clear();
    if (network.frozen_values) parameters_.upload(*network.frozen_values, size_);
    rates_.upload(own_rates(network));
    moment1_.clear();
    moment2_.clear();
    average_.clear();
    step_size_sum_.clear();
  }

  static bool transforms(const StepRecipe& recipe) {
    return std::holds_alternative<TransformedGradient>(recipe.contribution);
  }

  /// Returns the parameters: first those that are trained, [d], then those of frozen layers.
  const float* parameters() const { return parameters_.get(); }
  /// Makes every later update also write the parameters to `image`, the packed copy that fused
  /// kernels read.
  void write_packed(const PackedImage& image) { packed_ = image; }
  std::size_t size() const { return size_; }
  DeviceCoordinates& coordinates() { return coordinates_; }
  double* step_size_sum() const { return step_size_sum_.get(); }

  /// Sets parameters and optimizer state. Throws Error if an array of `s` does not have the
  /// expected size.
  void set(const TrainState& s) {
    ensure(s.parameters.size() == size_ && s.moment1.size() == moment1_.size() &&
               s.moment2.size() == moment2_.size() && s.average.size() == average_.size() &&
               s.mean.size() == coordinates_.mean().size() &&
               s.deviation.size() == coordinates_.deviation().size(),
           "the state does not fit the network and optimizer");
    parameters_.upload(s.parameters);
    moment1_.upload(s.moment1);
    moment2_.upload(s.moment2);
    average_.upload(s.average);
    step_size_sum_.upload({&s.step_size_sum, 1});
    coordinates_.mean().upload(s.mean);
    coordinates_.deviation().upload(s.deviation);
  }
  TrainState get() const {
    return {.parameters = parameters_.download(size_),
            .moment1 = moment1_.download(),
            .moment2 = moment2_.download(),
            .average = average_.download(),
            .step_size_sum = step_size_sum_.download().front(),
            .mean = coordinates_.mean().download(),
            .deviation = coordinates_.deviation().download(),
            .norms = {}};
  }

  /// Returns the arguments of an update kernel that are the same for all steps. They do not include
  /// the step's scalars (learning rate, ...), which kernels read from device memory, and the
  /// released values. recipe: recipe of the steps.
  UpdateArgs update_args(const StepRecipe& recipe) {
    UpdateArgs args{};
    args.parameters = parameters_.get();
    args.moment1 = moment1_.get();
    args.moment2 = moment2_.get();
    args.average = average_.get();
    args.end = static_cast<std::int64_t>(size_);
    args.optimizer = recipe.optimizer;
    args.mean = coordinates_.mean().get();
    args.deviation = coordinates_.deviation().get();
    args.scale = coordinates_.scale();
    args.packed = packed_;
    args.rates = rates_.size() > 0 ? rates_.get() : nullptr;
    if (const auto* const transformed = std::get_if<TransformedGradient>(&recipe.contribution))
      args.coordinates = transformed->coordinates;
    return args;
  }

 private:
  std::size_t size_;          // d
  Buffer<float> parameters_;  // [d and those of frozen layers]; the others have [d] or are empty
  Buffer<float> moment1_;
  Buffer<float> moment2_;
  Buffer<float> average_;
  DeviceCoordinates coordinates_;
  Buffer<double> step_size_sum_;
  Buffer<float> rates_;
  PackedImage packed_{};
};

}  // namespace cudp::cuda::inline CUDP_SIMT
