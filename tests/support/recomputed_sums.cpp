#include "tests/support/recomputed_sums.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <variant>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "runtime/base/safetensors.hpp"
#include "runtime/data/numbering.hpp"
#include "runtime/features/features.hpp"
#include "runtime/methods/adaclip.hpp"
#include "runtime/settings/settings.hpp"
#include "tests/support/recomputer.hpp"
#include "tests/support/temporary_folder.hpp"

namespace cudp::recomputing {
namespace {

/// Numbers of gradients that are made of one run, about.
constexpr double kMost = 2e7;

}  // namespace

Recomputer::Recomputer(const fs::path& run, const std::string& transcript)
    : certificate_(verify::read_stated_numbers(content_of(run / "release/privacy.json"))),
      json_(nlohmann::json::parse(content_of(run / "release/privacy.json"))),
      records_(transcript::decode(transcript)) {
  TrainConfig config;
  apply_settings(parse_settings(content_of(run / "release/config.toml"), "config.toml"), config);
  config.device = Device::cpu;
  config.feature_cache = "none";
  config.threads = 1;
  config.out = "nowhere";
  check_complete(config);
  Reporter quiet(true);
  experiment_ = prepare(config, quiet);
  as_read_ = experiment_.data.train;
  can_ = show_what_was_released(run / "release/model.safetensors");
  const double epoch = std::round(certificate_.size / static_cast<double>(config.batch));
  steps_per_epoch_ = epoch >= 1.0 ? static_cast<std::uint64_t>(epoch) : 1;
  engine_ = std::make_unique<Oracle>(experiment_.network, EngineSettings{});
  std::uint64_t steps = 0;
  for (const transcript::Record& r : records_)
    steps += std::holds_alternative<transcript::Update>(r);
  const double each =
      2.0 * static_cast<double>(parameters()) * std::fmax(certificate_.expected_batch, 1.0);
  every_ = static_cast<std::uint64_t>(std::ceil(each * static_cast<double>(steps) / kMost));
  every_ = std::max<std::uint64_t>(every_, 1);
}

Recomputed Recomputer::run() {
  if (!can_) {
    ++found_.left_out;
    return found_;
  }
  for (const transcript::Record& record : records_) {
    std::visit([this](const auto& r) { process(r); }, record);
    if (!found_.fault.empty()) break;
  }
  return found_;
}

void Recomputer::fault(const std::string& what) {
  if (found_.fault.empty()) found_.fault = "oracle: " + what;
}

bool Recomputer::show_what_was_released(const fs::path& model) {
  FeatureSettings features = feature_settings(config());
  if (!rest_on_release(features)) return true;
  if (!fs::exists(model)) return false;
  features.dimensions = net().input.size();
  const TensorFile file = decode_safetensors(content_of(model), "model");
  show_features(experiment_, read_release(file, features, "model"));
  return true;
}

void Recomputer::process(const transcript::Begin& b) {
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

void Recomputer::process(const transcript::Batch& b) {
  batch_ = b;
  // Examples are drawn by their numbers in the file.
  const std::size_t left = Numbering(train()).to_indices(batch_->examples);
  if (left != b.examples.size())
    return fault(
        fmt::format("step {}: {} held-out rows were drawn", b.step, b.examples.size() - left));
  if (is("dpis")) draw_candidates(*batch_);
}

void Recomputer::process(const transcript::Release& r) {
  switch (static_cast<Stream>(r.stream)) {
    case Stream::noise:
      if (is("dp-agd")) return check_descent(r);
      if (is("outpert") || is("objpert")) return check_minimum(r);
      released_ = r;
      return is("dpis") ? check_directions(r) : check_sum(r);
    case Stream::clipped_count:
      return check_count(r);
    case Stream::norm_total:
      return check_norms(r, true);
    case Stream::largest_norms:
      return check_norms(r, false);
    case Stream::selection:
      if (is("dp-agd")) check_losses(r);
      return;
    case Stream::dataset_size:
      return check_size(r);
    case Stream::covariance:
      return check_second_moments(r);
    case Stream::channel_moments:
      return check_channel_moments(r);
    case Stream::holdout_figures:
      return check_held_out(r);
    default:
      return;
  }
}

void Recomputer::process(const transcript::Update& u) {
  if (is("adaclip")) follow_coordinates(u);
  state_ = {u.parameters, u.moment1, u.moment2, u.average};
  iteration_ = u.step + 1;
  beside_[iteration_] = now_;
}

RandomStream Recomputer::stream(Stream which, std::uint64_t step) const {
  RandomKey key{};
  std::ranges::copy(begin_->key, std::begin(key.words));
  return {begin_->generator == "philox" ? Generator::philox : Generator::chacha20, key, which,
          step};
}

bool Recomputer::is_sane() const {
  return std::ranges::all_of(state_.parameters,
                             [](float x) { return std::fabs(static_cast<double>(x)) < kLargest; });
}

}  // namespace cudp::recomputing

namespace cudp {

Recomputed recompute_sums(const std::filesystem::path& run, const std::string& transcript) {
  return recomputing::Recomputer(run, transcript).run();
}

}  // namespace cudp
