#include "runtime/run/checkpoint.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kMagic = "cudp checkpoint 5\n";
constexpr std::string_view kPrefix = "checkpoint-";
constexpr std::size_t kKept = 2;
constexpr std::string_view kPurpose = "checkpoint";

Json encode_plan(const PrivacyPlan& p) {
  Json noise = Json::array();
  for (const NoiseSpan& span : p.noise) noise.push_back({span.until, span.scale});
  return {{"sampling_threshold", p.sampling_threshold},
          {"expected_batch", p.expected_batch},
          {"largest_sum", p.largest_sum},
          {"steps", p.steps},
          {"clip_norm", p.clip_norm},
          {"sensitivity", p.sensitivity},
          {"noise_multiplier", p.noise_multiplier},
          {"noise", noise},
          {"epoch_releases", p.epoch_releases},
          {"epoch_noise", p.epoch_noise},
          {"delta", p.delta},
          {"size_noise", p.size_noise},
          {"feature_noise", p.feature_noise},
          {"failure", p.failure},
          {"order", p.order},
          {"accountant", privacy::name(p.accountant)}};
}

PrivacyPlan decode_plan(const Json& j) {
  PrivacyPlan p;
  p.sampling_threshold = j.at("sampling_threshold").get<std::uint64_t>();
  p.expected_batch = j.at("expected_batch").get<double>();
  p.largest_sum = j.at("largest_sum").get<std::uint64_t>();
  p.steps = j.at("steps").get<std::uint64_t>();
  p.clip_norm = j.at("clip_norm").get<double>();
  p.sensitivity = j.at("sensitivity").get<double>();
  p.noise_multiplier = j.at("noise_multiplier").get<double>();
  for (const Json& span : j.at("noise"))
    p.noise.push_back({span.at(0).get<std::uint64_t>(), span.at(1).get<double>()});
  p.epoch_releases = j.at("epoch_releases").get<std::uint64_t>();
  p.epoch_noise = j.at("epoch_noise").get<double>();
  p.delta = j.at("delta").get<double>();
  p.size_noise = j.at("size_noise").get<double>();
  p.feature_noise = j.at("feature_noise").get<double>();
  p.failure = j.at("failure").get<double>();
  p.order = j.at("order").get<double>();
  for (const auto a : {privacy::Accountant::pld, privacy::Accountant::rdp,
                       privacy::Accountant::best, privacy::Accountant::advanced})
    if (j.at("accountant") == privacy::name(a)) {
      p.accountant = a;
      return p;
    }
  throw std::invalid_argument("an accountant that is not known: " + j.at("accountant").dump());
}

/// Calls visit on each array of a checkpoint, in the order of the file.
template <class AnyCheckpoint, class Visit>
void for_each_array(AnyCheckpoint& c, Visit visit) {
  auto& s = c.state;
  for (auto* array : {&s.parameters, &s.moment1, &s.moment2, &s.average, &s.mean, &s.deviation,
                      &s.norms, &c.feature_release})
    visit(*array);
}

void append_number(std::string& bytes, std::uint64_t number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

std::uint64_t take_number(std::string_view& bytes) {
  std::uint64_t number = 0;
  std::memcpy(&number, bytes.data(), sizeof number);
  bytes.remove_prefix(sizeof number);
  return number;
}

/// The step in a checkpoint's name; empty for other files.
std::optional<std::uint64_t> step_of(const fs::path& path) {
  const std::string name = path.filename().string();
  if (!name.starts_with(kPrefix)) return std::nullopt;
  std::uint64_t step = 0;
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + kPrefix.size(), end, step);
  if (error != std::errc() || rest != end) return std::nullopt;
  return step;
}

/// Newest first.
std::vector<fs::path> checkpoints_in(const fs::path& folder) {
  std::vector<std::pair<std::uint64_t, fs::path>> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (const auto step = step_of(entry.path())) found.emplace_back(*step, entry.path());
  std::ranges::sort(found, std::greater<>());
  std::vector<fs::path> paths;
  paths.reserve(found.size());
  for (auto& [step, path] : found) paths.push_back(std::move(path));
  return paths;
}

}  // namespace

// Layout: magic, length of the JSON header, header, float arrays, and a checksum of all
// that stands before it.
std::string encode_checkpoint(const Checkpoint& c) {
  Json header{{"step", c.step},
              {"plan", encode_plan(c.plan)},
              {"training_size", c.training_size},
              {"arithmetic", c.arithmetic},
              {"program", c.program},
              {"data", c.data},
              {"seconds", c.seconds},
              {"key_check", c.key_check},
              {"ledger", c.ledger.to_text()},
              {"metrics", encode_metrics(c.metrics)},
              {"config", c.config},
              {"model", c.model},
              {"step_size_sum", c.state.step_size_sum},
              {"dpis", {c.dpis.epoch, c.dpis.clip, c.dpis.total, c.dpis.sigma, c.dpis.left}},
              {"method", c.method},
              {"arrays", Json::array()}};
  for_each_array(c, [&](const auto& array) { header["arrays"].push_back(array.size()); });
  const std::string json = header.dump();

  std::string bytes(kMagic);
  append_number(bytes, json.size());
  bytes += json;
  for_each_array(c, [&](const std::vector<float>& array) {
    bytes.append(reinterpret_cast<const char*>(array.data()), array.size() * sizeof(float));
  });
  append_number(bytes, checksum(bytes));
  return bytes;
}

Checkpoint decode_checkpoint(const std::string& file, const std::string& source) {
  const auto fail = [&](const char* what) -> void { throw Error(source + ": " + what); };
  std::string_view bytes = file;
  if (bytes.size() < kMagic.size() + 2 * sizeof(std::uint64_t) || !bytes.starts_with(kMagic))
    fail("damaged: not a checkpoint");
  std::string_view sum = bytes.substr(bytes.size() - sizeof(std::uint64_t));
  bytes.remove_suffix(sizeof(std::uint64_t));
  if (checksum(bytes) != take_number(sum)) fail("damaged: its checksum does not match");

  // From here on the file is as it was written.
  bytes.remove_prefix(kMagic.size());
  const std::uint64_t length = take_number(bytes);
  if (length > bytes.size()) fail("damaged: it is too short");
  Checkpoint c;
  try {
    const Json header = Json::parse(bytes.substr(0, length));
    bytes.remove_prefix(length);
    c.step = header.at("step").get<std::uint64_t>();
    c.plan = decode_plan(header.at("plan"));
    c.training_size = header.at("training_size").get<double>();
    c.arithmetic = header.at("arithmetic").get<std::string>();
    c.program = header.at("program").get<std::string>();
    c.data = header.at("data").get<std::string>();
    c.seconds = header.at("seconds").get<double>();
    c.key_check = header.at("key_check").get<std::uint64_t>();
    c.ledger = privacy::Ledger::from_text(header.at("ledger").get<std::string>(), source);
    c.metrics = decode_metrics(header.at("metrics").get<std::string>());
    c.config = header.at("config").get<std::string>();
    c.model = header.at("model").get<std::string>();
    const Json& dpis = header.at("dpis");
    c.dpis = {dpis.at(0).get<std::uint64_t>(), dpis.at(1).get<double>(), dpis.at(2).get<double>(),
              dpis.at(3).get<double>(), dpis.at(4).get<double>()};
    c.state.step_size_sum = header.at("step_size_sum").get<double>();
    c.method = header.at("method").get<std::string>();
    std::size_t next = 0;
    for_each_array(c, [&](std::vector<float>& array) {
      array.resize(header.at("arrays").at(next++).get<std::size_t>());
      const std::size_t size = array.size() * sizeof(float);
      if (size > bytes.size()) fail("damaged: it is too short");
      if (size > 0) std::memcpy(array.data(), bytes.data(), size);
      bytes.remove_prefix(size);
    });
  } catch (const Json::exception& e) {
    fail(e.what());
  } catch (const std::invalid_argument& e) {
    fail(e.what());
  }
  return c;
}

void save_checkpoint(const fs::path& folder, const Checkpoint& checkpoint, const Seal& seal) {
  write_sealed(folder / (std::string(kPrefix) + std::to_string(checkpoint.step)), kPurpose,
               encode_checkpoint(checkpoint), seal);
  const std::vector<fs::path> all = checkpoints_in(folder);
  for (std::size_t i = kKept; i < all.size(); ++i) fs::remove(all[i]);
}

bool StoredCheckpoint::is_sealed_by(const Seal& seal) const {
  return seal.holds(kPurpose, file.content, file.tag);
}

std::optional<StoredCheckpoint> newest_checkpoint(
    const fs::path& folder, const std::function<void(const std::string&)>& damaged) {
  for (const fs::path& path : checkpoints_in(folder)) {
    try {
      SealedFile file = read_sealed(path);
      Checkpoint checkpoint = decode_checkpoint(file.content, path.string());
      return StoredCheckpoint{std::move(checkpoint), std::move(file), path};
    } catch (const Error& e) {
      damaged(e.what());
    }
  }
  return std::nullopt;
}

void remove_checkpoints(const fs::path& folder) {
  for (const fs::path& path : checkpoints_in(folder)) fs::remove(path);
}

}  // namespace cudp
