#include "privacy/verify/checker.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <variant>

#include "privacy/mechanism/mechanism_text.hpp"
#include "privacy/text/number.hpp"
#include "privacy/verify/certificate.hpp"
#include "privacy/verify/generator.hpp"
#include "privacy/verify/line_search.hpp"
#include "privacy/verify/noisy_choice.hpp"
#include "privacy/verify/optimizer.hpp"
#include "privacy/verify/rounded_normal.hpp"
#include "privacy/verify/settings.hpp"
#include "privacy/verify/statements.hpp"
#include "privacy/verify/step_numbers.hpp"

namespace cudp::verify {
namespace {

using privacy::number;

// The streams that noise is drawn from, as kernels/random/random.hpp numbers them.
constexpr std::uint32_t kSampling = 1;
constexpr std::uint32_t kNoise = 2;
constexpr std::uint32_t kSize = 4;
constexpr std::uint32_t kNormTotal = 6;
constexpr std::uint32_t kLargestNorms = 7;
constexpr std::uint32_t kSelection = 8;
constexpr std::uint32_t kCovariance = 9;
constexpr std::uint32_t kMoments = 10;
constexpr std::uint32_t kCount = 11;

constexpr double kTwo32 = 0x1p32;

/// A float that was rounded up from a double, and roundings in the product that it was.
constexpr double kFloatAbove = 1.0 + 0x1p-22;
constexpr double kProduct = 1.0 - 0x1p-51;
/// The share that the host may add to a standard deviation, so that rounding never takes any away.
constexpr double kHostAbove = 1.0 + 1e-9;

bool is_power_of_two(double x) {
  int exponent = 0;
  return std::isnormal(x) && x > 0.0 && std::frexp(x, &exponent) == 0.5;
}

double length(std::span<const std::int64_t> sums, double grid) {
  long double square = 0.0L;
  for (const std::int64_t s : sums)
    square += static_cast<long double>(s) * static_cast<long double>(s);
  return static_cast<double>(std::sqrt(square)) * grid;
}

std::uint64_t hash_of(const State& s) {
  std::uint64_t hash = 14695981039346656037u;
  for (const auto* array : {&s.parameters, &s.moment1, &s.moment2, &s.average}) {
    for (const float x : *array) hash = (hash ^ std::bit_cast<std::uint32_t>(x)) * 1099511628211u;
    hash = (hash ^ array->size()) * 1099511628211u;
  }
  return hash;
}

/// Facts about methods, known from outside.
struct Kinds {
  bool known = false;
  bool engine = false;  ///< sums of clipped gradients of Poisson batches, with an optimizer
  std::set<std::uint32_t> host;  ///< streams that the host's sums have their noise from
  bool choices = false;
};

Kinds kinds_of(const Certificate& c) {
  static const std::set<std::string> engines = {
      "dpsgd",   "dpsgd-ts", "dpsgd-decay", "dpsgd-quantile", "adp-sgd",
      "adaclip", "dpis",     "sgd-ma",      "sgd-adv",        "norm-bound"};
  Kinds k;
  k.engine = engines.contains(c.method);
  k.known = k.engine || c.method == "dp-agd" || c.method == "outpert" || c.method == "objpert" ||
            c.method == "privgene";
  if (c.size_noise > 0.0) k.host.insert(kSize);
  if (c.feature_noise > 0.0) k.host.insert({kCovariance, kMoments});
  if (c.method == "dpsgd-quantile") k.host.insert(kCount);
  if (c.method == "dpis") k.host.insert({kNormTotal, kLargestNorms});
  if (c.method == "dp-agd" || c.method == "outpert") k.host.insert(kNoise);
  k.choices = c.method == "dp-agd" || c.method == "privgene";
  return k;
}

/// The place where noise was drawn.
using Place = std::pair<std::uint32_t, std::uint64_t>;  // stream, step

std::uint64_t steps_per_epoch(const Certificate& c, const Settings& settings) {
  const double batch = settings.empty() ? c.expected_batch : settings.number("batch");
  const double steps = batch > 0.0 ? std::round(c.size / batch) : 1.0;
  return steps >= 1.0 ? static_cast<std::uint64_t>(steps) : 1;
}

void hold_statements(const Certificate& certificate, const Charges* charges,
                     const Settings& settings, const Kinds& kinds, Findings& findings) {
  if (!kinds.known) findings.add("kinds", "method " + certificate.method + " is not known");
  check_statements(certificate, charges, settings, kinds.engine, findings);
}

void give(Findings& findings, Verdict& verdict) {
  verdict.findings = std::move(findings.all);
  verdict.skipped = std::move(findings.skipped);
  verdict.epsilon = findings.epsilon;
}

class Checker {
 public:
  explicit Checker(const Evidence& evidence)
      : certificate_(read_certificate(evidence.certificate)),
        charges_(read_charges(evidence.ledger)),
        settings_(evidence.settings),
        records_(decode(evidence.transcript)),
        kinds_(kinds_of(certificate_)),
        steps_per_epoch_(steps_per_epoch(certificate_, settings_)),
        numbers_(certificate_, settings_, steps_per_epoch_, findings_) {
    for (const Charge& c : charges_.lines)
      if (c.numbered && c.first == 0 && c.key == 0) {
        totals_an_epoch_ = c.release.count;
        break;
      }
  }

  Verdict run() {
    hold_statements(certificate_, &charges_, settings_, kinds_, findings_);
    for (const Record& record : records_) std::visit([this](const auto& r) { see(r); }, record);
    finish();
    give(findings_, verdict_);
    return std::move(verdict_);
  }

 private:
  bool is(const char* method) const { return certificate_.method == method; }
  /// The factor by which rounding may lengthen a clipped gradient.
  double rounding() const { return certificate_.sensitivity / certificate_.clip; }

  void add(const char* rule, std::string what) { findings_.add(rule, std::move(what)); }
  void expect(bool holds, const char* rule, const std::string& where, double expected,
              double found) {
    findings_.expect(holds, rule, where, expected, found);
  }
  void skip(const std::string& what) { findings_.skip(what); }
  static std::string at(const Release& r) { return r.name + ", step " + std::to_string(r.step); }
  static std::string at(std::uint64_t step) { return "step " + std::to_string(step); }

  // The transcript.

  void see(const Begin& b) {
    if (b.generator != certificate_.generator)
      add("noise", "generator: expected " + certificate_.generator + ", found " + b.generator);
    if (certificate_.examples && *certificate_.examples != b.examples)
      add("batch", "examples: expected " + std::to_string(*certificate_.examples) + ", found " +
                       std::to_string(b.examples));
    if (!begin_) check_seed(b);
    const bool same_key = begin_ && b.key == begin_->key;
    if (!keys_.insert(b.key).second && !same_key)
      add("twice", "a process goes on with a key that was lost before");
    if (begin_ && b.key != begin_->key) {
      ++key_;
      key_lines_.reset();
    }
    if (begin_) forget_from(b.step);
    begin_ = b;
    batch_.reset();
    sum_.reset();
    measured_.clear();
    next_step_ = b.step;
    state_.reset();
    line_search_.begin(b.step);
  }

  /// The first key is the seed's; a fresh one is random.
  void check_seed(const Begin& b) {
    if (!settings_.has("seed")) return;
    const auto seed = static_cast<std::uint64_t>(std::stoll(settings_.text("seed")));
    std::array<std::uint32_t, 8> from{};
    from[0] = static_cast<std::uint32_t>(seed);
    from[1] = static_cast<std::uint32_t>(seed >> 32);
    const auto block = chacha20_block(from, 0, {0x64656573, 0, 0});  // "seed"
    if (!std::equal(b.key.begin(), b.key.end(), block.begin()))
      add("noise", "the key is not that of the seed");
  }

  /// A process goes on from a checkpoint at `step`: what was listed after it will be again.
  void forget_from(std::uint64_t step) {
    std::erase_if(listed_at_least_, [&](const auto& entry) {
      const auto& [stream, at_step] = entry.first;
      if (stream == kCount) return at_step >= step;
      if (stream == kNormTotal || stream == kLargestNorms)
        return (at_step + 1) * steps_per_epoch_ > step;
      return is("dp-agd") && (stream == kNoise || stream == kSelection);
    });
  }

  void see(const State& s) {
    state_ = s;
    if (!begin_) return add("update", "parameters before a process has begun");
    if (begin_->step == 0) {
      const auto is_zero = [](const std::vector<float>& m) {
        return std::ranges::all_of(m, [](float x) { return x == 0.0f; });
      };
      if (!is_zero(s.moment1) || !is_zero(s.moment2) ||
          (!s.average.empty() && s.average != s.parameters))
        add("update", "expected moments of 0 and an average of the parameters to begin with");
      return;
    }
    const auto known = states_.find(begin_->step);
    if (known != states_.end() && known->second != hash_of(s))
      add("update", "a process goes on at step " + std::to_string(begin_->step) +
                        " from numbers that no update left");
  }

  void see(const Batch& b) {
    if (!begin_) return add("batch", at(b.step) + ": no process has begun");
    batch_ = b;
    if (std::ranges::adjacent_find(b.examples, std::greater_equal<>()) != b.examples.end())
      add("batch", at(b.step) + ": expected each example once, ascending");
    if (!b.examples.empty() && b.examples.back() >= begin_->examples)
      add("batch", at(b.step) + ": expected examples below " + std::to_string(begin_->examples) +
                       ", found " + std::to_string(b.examples.back()));
    if (is("dpis")) {
      if (b.threshold != 0) add("batch", at(b.step) + ": expected candidates, found a threshold");
      return skip("candidates of dpis, whose thresholds follow from private norms");
    }
    if (b.threshold != certificate_.threshold)
      add("batch", at(b.step) + ": expected threshold " + std::to_string(certificate_.threshold) +
                       ", found " + std::to_string(b.threshold));
    const std::vector<std::uint32_t> words =
        Words(begin_->generator, begin_->key, kSampling, b.step).first(begin_->examples);
    std::vector<std::uint32_t> drawn;
    for (std::size_t i = 0; i < words.size(); ++i)
      if (words[i] < certificate_.threshold) drawn.push_back(static_cast<std::uint32_t>(i));
    if (drawn == b.examples) return;
    const auto [expected, found] = std::ranges::mismatch(drawn, b.examples);
    add("batch", at(b.step) + ": expected " + std::to_string(drawn.size()) + " examples, found " +
                     std::to_string(b.examples.size()) + ", other ones from place " +
                     std::to_string(expected - drawn.begin()));
  }

  /// The sensitivity of a sum of clipped gradients that an engine makes.
  bool is_engine_sum(const Release& r) const { return kinds_.engine && r.stream == kNoise; }

  void see(const Release& r) {
    ++verdict_.releases;
    if (!begin_) return add("noise", at(r) + ": no process has begun, so that there is no key");
    const bool first = is_first(r);
    check_kind(r);
    const privacy::Mechanism* const charged = check_charge(r, first);
    if (is_engine_sum(r)) {
      check_engine_sum(r, charged);
      sum_ = r;
    } else if (!r.sums.empty()) {
      check_host_sum(r, charged);
      if (is("dp-agd") && r.stream == kNoise && charged != nullptr)
        measured_.push_back({sigma_of(*charged), r.values});
    } else {
      if (charged != nullptr && sigma_of(*charged) > 0.0)
        add("charged", at(r) + ": charged as sums with Gaussian noise");
      if (r.stream == kSelection)
        expect(r.sensitivity == certificate_.loss_sensitivity, "noise", at(r) + ", sensitivity",
               certificate_.loss_sensitivity, r.sensitivity);
      if (is("objpert"))
        expect(r.noise_std == certificate_.noise_std, "noise", at(r) + ", standard deviation",
               certificate_.noise_std, r.noise_std);
    }
    if (first) check_noise(r);
    if (first && r.stream == kSelection) check_choice(r, charged);
    if (is("dp-agd") && r.stream == kSelection) line_search_.see_choice(r);
  }

  /// Whether it is the first at its place under this key; where it is not, it must be the same.
  bool is_first(const Release& r) {
    const auto [known, is_new] = places_.try_emplace({key_, {r.stream, r.step}}, r);
    if (is_new) return true;
    Release same = r;
    same.charged = known->second.charged;
    if (known->second != same)
      add("twice", at(r) + ": stream " + std::to_string(r.stream) +
                       " was drawn from before, under the same key, for other sums");
    return false;
  }

  void check_kind(const Release& r) {
    const auto wrong = [&] {
      add("kinds", at(r) + ": the certificate's method releases nothing of stream " +
                       std::to_string(r.stream) + " like this");
    };
    if (r.sums.empty()) {
      const bool choice = r.stream == kSelection && kinds_.choices;
      const bool minimum = r.stream == kNoise && is("objpert");
      if (!choice && !minimum) return wrong();
      if (minimum) skip("noise in an objective, which no grid rounds");
      return;
    }
    if (r.sums.size() != r.values.size()) add("kinds", at(r) + ": expected as many values as sums");
    if (is_engine_sum(r)) return;
    if (!kinds_.host.contains(r.stream)) return wrong();
    const Listing kind{r.name, r.values.size(), r.sensitivity, r.noise_std, r.grid};
    made_.insert({key_, {r.stream, r.step}, kind});
    listed_at_least_[{r.stream, r.step}] = kind;
  }

  // What a release is charged as.

  /// Its number among the charges; none for what is charged before the first of them.
  std::optional<std::uint64_t> number_of(const Release& r) const {
    if (is("dp-agd") && (r.stream == kNoise || r.stream == kSelection)) return r.step;
    if (!kinds_.engine) return std::nullopt;
    const std::uint64_t width = steps_per_epoch_ + totals_an_epoch_;
    if (r.stream == kNormTotal) return r.step * width;
    if (r.stream == kLargestNorms) return r.step * width + 1;
    if (r.stream != kNoise && r.stream != kCount) return std::nullopt;
    if (!is("dpis")) return r.step;
    return r.step / steps_per_epoch_ * width + totals_an_epoch_ + r.step % steps_per_epoch_;
  }

  /// The mechanism that it was charged as, before; null where it was not.
  const privacy::Mechanism* check_charge(const Release& r, bool first) {
    if (r.charged > charges_.total)
      add("charged", at(r) + ": the ledger had " + std::to_string(r.charged) +
                         " releases, and has " + std::to_string(charges_.total));
    const auto n = number_of(r);
    if (!n) return take(r, first);
    // A key of its own has charges of its own, after the loss of the one before.
    const std::uint64_t now = charges_.keys_until(r.charged);
    if (!key_lines_) {
      if (key_ == 0 ? now != 0 : now <= last_key_lines_) {
        add("charged", at(r) + ": a new key, for which nothing was charged");
        return nullptr;
      }
      key_lines_ = last_key_lines_ = now;
    }
    const privacy::Mechanism* const m = charges_.find(*n, *key_lines_, r.charged);
    if (m == nullptr)
      add("charged", at(r) + ": release " + std::to_string(*n) +
                         " was not in the ledger, which had " + std::to_string(r.charged));
    return m;
  }

  /// Takes one of the charges without a number, which are counted in halves: a covariance is
  /// released in two parts.
  const privacy::Mechanism* take(const Release& r, bool first) {
    const double multiplier = r.sensitivity > 0.0 ? r.noise_std / r.sensitivity : 0.0;
    std::uint64_t charged = 0;
    const privacy::Mechanism* found = nullptr;
    for (const Charge& c : charges_.lines) {
      if (c.numbered) continue;
      const privacy::Mechanism& m = c.release.mechanism;
      const double sigma = sigma_of(m);
      const bool same = sigma > 0.0 ? !r.sums.empty() && multiplier >= sigma * kProduct &&
                                          multiplier <= sigma * kHostAbove
                        : std::holds_alternative<privacy::BoundedRange>(m)
                            ? r.stream == kSelection
                            : r.sums.empty() && is("objpert");
      if (!same || (found != nullptr && *found != m)) continue;
      found = &m;
      if (c.position < r.charged) charged += std::min(c.release.count, r.charged - c.position);
    }
    if (found == nullptr) {
      add("charged", at(r) + ": nothing like it is in the ledger");
      return nullptr;
    }
    std::uint64_t& taken = taken_[exact_text(*found)];
    if (first)
      taken += r.stream == kSelection ? 2 * r.values.size() : r.stream == kCovariance ? 1 : 2;
    if (taken > 2 * charged)
      add("charged", at(r) + ": the ledger had " + std::to_string(charged) + " like it");
    return found;
  }

  // Its noise.

  void check_noise(const Release& r) {
    if (r.sums.empty() || r.sums.size() != r.values.size()) return;
    const double s = r.noise_std / r.grid;
    if (!is_power_of_two(r.grid) || !(s >= 0x1p16 && s <= 0x1p40))
      return add("noise", at(r) +
                              ": expected noise of 2^16 to 2^40 steps of a power of two, found " +
                              number(r.noise_std) + " on " + number(r.grid));
    const std::vector<std::int64_t> noise =
        rounded_normals(Words(begin_->generator, begin_->key, r.stream, r.step), s, r.sums.size());
    verdict_.numbers += noise.size();
    for (std::size_t j = 0; j < noise.size(); ++j) {
      const auto units = static_cast<std::int64_t>(static_cast<std::uint64_t>(r.sums[j]) +
                                                   static_cast<std::uint64_t>(noise[j]));
      double value = static_cast<double>(units) * r.grid;
      if (is_engine_sum(r)) value = static_cast<double>(static_cast<float>(value));
      if (value == r.values[j]) continue;
      return expect(false, "noise", at(r) + ", number " + std::to_string(j), value, r.values[j]);
    }
  }

  /// The places that noise of the charged epsilon chooses among the scores.
  void check_choice(const Release& r, const privacy::Mechanism* charged) {
    if (charged == nullptr || !kinds_.choices) return;
    const Words words(begin_->generator, begin_->key, r.stream, r.step);
    const double sensitivity = certificate_.loss_sensitivity;
    std::vector<double> chosen;
    if (r.scores.size() < r.values.size() || !(sensitivity > 0.0))
      return add("noise", at(r) + ": expected scores that a choice was made among");
    if (const auto* range = std::get_if<privacy::BoundedRange>(charged)) {
      const auto places =
          gumbel_choices(words, r.scores, range->epsilon, sensitivity, r.values.size());
      if (!places) return skip("a choice that 64 random bits leave open");
      chosen.assign(places->begin(), places->end());
    } else if (const auto* pure = std::get_if<privacy::ApproximateDp>(charged)) {
      const auto place = laplace_choice(words, r.scores, pure->epsilon, sensitivity);
      if (!place) return skip("a choice that roundings leave open");
      chosen.push_back(static_cast<double>(*place));
    } else {
      return add("charged", at(r) + ": expected a choice's mechanism in the ledger");
    }
    verdict_.numbers += r.scores.size();
    if (chosen != r.values)
      expect(false, "noise", at(r) + ", place of the first choice", chosen.at(0), r.values.at(0));
  }

  void check_engine_sum(const Release& r, const privacy::Mechanism* charged) {
    const Certificate& c = certificate_;
    if (!batch_ || batch_->step != r.step) add("batch", at(r) + ": no batch was drawn");
    if (sum_) add("update", at(sum_->step) + ": a release that no update followed");
    if (charged == nullptr) return;
    const double sigma = sigma_of(*charged);
    double sensitivity = c.sensitivity;
    if (c.quantile) {
      sensitivity = r.noise_std / c.quantile->gradient_noise;
      check_quantile(r, sensitivity / rounding());
    } else {
      if (is("dpis")) {
        sensitivity = rounding();  // accepted gradients have norm 1
        check_importance(r, rate_of(*charged));
      }
      const double stated = sigma * sensitivity;
      expect(r.noise_std >= stated * kProduct && r.noise_std <= stated * kFloatAbove, "noise",
             at(r) + ", standard deviation", stated, r.noise_std);
      expect(r.grid == c.grid, "noise", at(r) + ", grid", c.grid, r.grid);
    }
    if (!is("dpis"))
      expect(rate_of(*charged) == c.q, "batch", at(r) + ", the rate that was charged", c.q,
             rate_of(*charged));
    if (c.quantile)
      expect(sigma == c.sigma, "noise", at(r) + ", sigma that was charged", c.sigma, sigma);
    if (batch_) check_length(r, static_cast<double>(batch_->examples.size()), sensitivity);
  }

  void check_length(const Release& r, double examples, double sensitivity) {
    const double max_length = examples * sensitivity * (1.0 + 1e-6);
    const double found = length(r.sums, r.grid);
    expect(found <= max_length, "sensitivity",
           at(r) + ", length of a sum of " + number(examples) + " examples, at most", max_length,
           found);
  }

  void check_host_sum(const Release& r, const privacy::Mechanism* charged) {
    const Certificate& c = certificate_;
    if (charged != nullptr && r.stream != kCount) {
      const double stated = sigma_of(*charged) * r.sensitivity;
      expect(r.noise_std >= stated * kProduct && r.noise_std <= stated * kHostAbove, "noise",
             at(r) + ", standard deviation", stated, r.noise_std);
    }
    const auto states = [&](double noise, double sensitivity) {
      expect(r.noise_std == noise, "noise", at(r) + ", standard deviation", noise, r.noise_std);
      expect(r.sensitivity == sensitivity, "noise", at(r) + ", sensitivity", sensitivity,
             r.sensitivity);
    };
    const auto examples = static_cast<double>(begin_->examples);
    switch (r.stream) {
      case kSize: {
        states(c.size_noise, 1.0);
        const double size = std::fmax(1.0, std::round(r.values.at(0)));
        expect(size == c.size, "noise", at(r) + ", certificate's noisy size", size, c.size);
        const double count = static_cast<double>(r.sums.at(0)) * r.grid;
        expect(count == examples, "sensitivity", at(r) + ", a count", examples, count);
        return;
      }
      case kCount:
        if (c.quantile) states(c.quantile->count_noise, c.quantile->count_sensitivity);
        counts_[r.step] = r.values.at(0);
        if (!batch_ || batch_->step != r.step) add("batch", at(r) + ": no batch was drawn");
        if (batch_) check_length(r, static_cast<double>(batch_->examples.size()), r.sensitivity);
        return;
      case kMoments:
        states(c.feature_noise, 1.0);
        break;
      case kCovariance:
        // The diagonal; and what is off it, once of two equal numbers, so that both are one
        // Gaussian release.
        if (r.step == 0)
          states(c.feature_noise, 1.0);
        else
          states(c.feature_noise * std::sqrt(0.5) * (1.0 + 0x1p-51), std::sqrt(0.5));
        break;
      case kNormTotal:
        norm_totals_[r.step] = {r.sensitivity, r.values.at(0)};
        if (r.step == 0)
          expect(r.sensitivity == c.clip, "noise", at(r) + ", sensitivity", c.clip, r.sensitivity);
        break;
      case kLargestNorms:
        expect(r.sensitivity == 4.0 * c.clip, "noise", at(r) + ", sensitivity", 4.0 * c.clip,
               r.sensitivity);
        break;
      case kNoise:
        expect(r.sensitivity >= c.sensitivity, "noise", at(r) + ", sensitivity", c.sensitivity,
               r.sensitivity);
        if (is("outpert")) return check_minimum(r);
        break;
      default:
        return;
    }
    check_length(r, examples, r.sensitivity);
  }

  /// A minimum, no sum: of a loss of slope 1 and l2 / 2 |w|^2 an example, found up to a tolerance
  /// in each of two neighbours.
  void check_minimum(const Release& r) {
    if (settings_.empty()) return;
    const double min_sensitivity = (1.0 + 2.0 * settings_.number("solver-tolerance")) /
                                   (settings_.number("l2") * certificate_.size);
    expect(r.sensitivity >= min_sensitivity * kProduct, "sensitivity", at(r) + ", at least",
           min_sensitivity, r.sensitivity);
  }

  // dpsgd-quantile: the clipping norm follows released counts.

  /// clip: C of the step, which is not released itself; off by the rounding of noise_std to float.
  void check_quantile(const Release& r, double clip) {
    const Certificate::Quantile& q = *certificate_.quantile;
    expect(clip >= q.min_clip * (1.0 - 1e-6) && clip <= q.max_clip * (1.0 + 1e-6), "noise",
           at(r) + ", the clipping norm that its noise is for", std::clamp(clip, q.min_clip, q.max_clip),
           clip);
    if (r.step == 0)
      expect(std::fabs(clip / certificate_.clip - 1.0) < 1e-6, "noise",
             at(r) + ", the first clipping norm", certificate_.clip, clip);
    // The grid is a function of C, which is known up to its last bits.
    const bool fits = r.grid == engine_grid(clip * (1.0 - 1e-6)) ||
                      r.grid == engine_grid(clip * (1.0 + 1e-6)) || r.grid == engine_grid(clip);
    expect(fits, "noise", at(r) + ", grid", engine_grid(clip), r.grid);
    if (r.step > 0) check_followed(r, clip);
    clips_[r.step] = clip;
  }

  /// log C moves by -lr (share - target). Without the settings lr is unknown: the same everywhere.
  void check_followed(const Release& r, double clip) {
    const auto before = clips_.find(r.step - 1);
    const auto counted = counts_.find(r.step - 1);
    if (before == clips_.end() || counted == counts_.end()) return;
    const Certificate::Quantile& q = *certificate_.quantile;
    const bool at_end = clip <= q.min_clip * (1.0 + 1e-6) || clip >= q.max_clip * (1.0 - 1e-6);
    const double away = counted->second / certificate_.expected_batch + 0.5 - q.target;
    const double moved = -std::log(clip / before->second);
    constexpr double kOff = 1e-6;  // twice two floats' roundings, and more
    if (!settings_.empty()) {
      const double next = std::clamp(
          before->second * std::exp(-settings_.number("quantile-lr") * away), q.min_clip, q.max_clip);
      expect(std::fabs(clip / next - 1.0) < kOff, "noise",
             at(r) + ", the clipping norm, of the count before", next, clip);
      return;
    }
    if (at_end || std::fabs(away) < 1e-3) return;
    const double low = std::fmin((moved - kOff) / away, (moved + kOff) / away);
    const double high = std::fmax((moved - kOff) / away, (moved + kOff) / away);
    quantile_low_ = std::fmax(quantile_low_, low);
    quantile_high_ = std::fmin(quantile_high_, high);
    if (!(quantile_low_ <= quantile_high_)) {
      add("noise", at(r) + ": the clipping norm does not follow the released counts");
      quantile_low_ = low;
      quantile_high_ = high;
    }
  }

  // dpis: an epoch's rate and divisor follow from its released sum of norms.

  /// K~ of the epoch of a step; 0 where it was not released.
  double norm_total(std::uint64_t step) const {
    const auto found = norm_totals_.find(step / steps_per_epoch_);
    if (found == norm_totals_.end()) return 0.0;
    const auto [clip, measured] = found->second;
    const double min_total = certificate_.expected_batch * clip * (1.0 + 1e-6);
    return std::fmin(std::fmax(measured, min_total), certificate_.size * clip);
  }

  void check_importance(const Release& r, double charged) {
    const auto found = norm_totals_.find(r.step / steps_per_epoch_);
    if (found == norm_totals_.end())
      return add("batch", at(r) + ": the epoch began without a sum of norms");
    const double rate = std::fmin(
        1.0, certificate_.expected_batch * found->second.first / norm_total(r.step) * (1.0 + 1e-9));
    expect(std::fabs(charged / rate - 1.0) < 1e-12, "batch", at(r) + ", the rate that was charged",
           rate, charged);
    skip("noise multipliers of dpis, which its filter chooses: held against the charges alone");
  }

  // Updates.

  void see(const Update& u) {
    ++verdict_.updates;
    if (is("dp-agd")) return see_descent(u);
    const auto sum = std::exchange(sum_, std::nullopt);
    if (u.step != next_step_)
      add("update", at(u.step) + ": expected step " + std::to_string(next_step_));
    next_step_ = u.step + 1;
    if (!sum || sum->step != u.step) add("update", at(u.step) + ": no release of this step");
    check_divisor(u, sum);
    const auto released = places_.find({key_, {kNoise, u.step}});
    numbers_.see(u, released == places_.end() ? nullptr : &released->second);
    if (u.coordinates) {
      skip("parameters of adaclip, whose coordinates are not in the transcript");
      if (!is("adaclip")) add("update", at(u.step) + ": transformed gradients without adaclip");
    } else if (is("adaclip")) {
      add("update", at(u.step) + ": expected transformed gradients");
    }
    if (!state_) {
      add("update", at(u.step) + ": no parameters before");
    } else if (sum && sum->step == u.step) {
      const std::string wrong = follows(*state_, sum->values, u);
      if (!wrong.empty()) add("update", at(u.step) + ": " + wrong);
    }
    state_ = State{u.parameters, u.moment1, u.moment2, u.average};
    states_[u.step + 1] = hash_of(*state_);
  }

  /// A step of DP-AGD: along the sums of this iteration, merged by their precisions, and those of
  /// the regulariser, scaled to length 1.
  void see_descent(const Update& u) {
    if (u.step != next_step_)
      add("update", at(u.step) + ": expected step " + std::to_string(next_step_));
    next_step_ = u.step + 1;
    if (settings_.has("l2")) {
      const double q = certificate_.threshold > 0 ? certificate_.threshold / kTwo32 : 1.0;
      const double weight = certificate_.size * q * settings_.number("l2");
      expect(std::fabs(u.weight_decay - weight) <= 1e-12 * weight, "update",
             at(u.step) + ", weight of the regulariser", weight, u.weight_decay);
    }
    const std::string wrong = !state_ ? "no parameters before"
                                      : follows_descent(*state_, std::exchange(measured_, {}), u);
    if (!wrong.empty()) add("update", at(u.step) + ": " + wrong);
    if (settings_.has("step-shrink")) {
      const std::string size = line_search_.follows(u, settings_.number("step-shrink"));
      if (!size.empty()) add("update", at(u.step) + ": " + size);
    }
    state_ = State{u.parameters, {}, {}, {}};
    states_[u.step + 1] = hash_of(*state_);
  }

  void check_divisor(const Update& u, const std::optional<Release>& sum) {
    const Certificate& c = certificate_;
    const auto plain = static_cast<float>(1.0 / c.expected_batch);
    if (is("dpis")) {
      const double share = norm_total(u.step) / (c.size * c.expected_batch);
      expect(u.inverse_batch == static_cast<double>(static_cast<float>(share)), "divisor",
             at(u.step), share, u.inverse_batch);
      return;
    }
    const bool is_plain = u.inverse_batch == static_cast<double>(plain);
    bool normalised = false;
    if (c.quantile && sum) {
      // Of steps in units of C, 1 / b is divided by it.
      const double clip = sum->noise_std / c.quantile->gradient_noise / rounding();
      normalised = std::fabs(u.inverse_batch * clip / static_cast<double>(plain) - 1.0) < 1e-6;
    }
    bool fits = is_plain || normalised;
    if (c.quantile && !settings_.empty())
      fits = settings_.is_on("quantile-normalise") ? normalised : is_plain;
    else if (c.quantile && is_plain != normalised) {
      if (!normalised_) normalised_ = normalised;
      fits = fits && *normalised_ == normalised;
    }
    expect(fits, "divisor", at(u.step), static_cast<double>(plain), u.inverse_batch);
  }

  // At the end.

  using Listing = std::tuple<std::string, std::uint64_t, double, double, double>;

  void finish() {
    if (certificate_.is_finished()) {
      if (sum_) add("update", at(sum_->step) + ": a release that no update followed");
      check_number_of_releases();
      if (charges_.lost.empty() && verdict_.updates > 0 && next_step_ != certificate_.steps)
        add("kinds", "certificate's steps: expected " + std::to_string(next_step_) +
                         ", as many as updates, found " + std::to_string(certificate_.steps));
    }
    check_listed();
    if (!kinds_.engine && kinds_.known && !is("dp-agd"))
      skip("parameters of " + certificate_.method + ", which no optimizer updates");
  }

  /// All numbered charges were used, once each, unless a key was lost in between.
  void check_number_of_releases() {
    std::set<std::pair<std::uint64_t, std::uint64_t>> used;  // key, number
    for (const auto& [place, release] : places_)
      if (const auto n = number_of(release)) used.insert({place.first, *n});
    std::uint64_t charged = 0;
    for (const Charge& c : charges_.lines) {
      if (!c.numbered) continue;
      charged += c.release.count;
      // The first epoch has no clipping norm to choose.
      if (is("dpis") && totals_an_epoch_ == 2 && c.first == 0 &&
          is_epoch_total(certificate_, c.release.mechanism))
        --charged;
    }
    const bool fits = charges_.lost.empty() ? used.size() == charged : used.size() <= charged;
    if (!fits)
      add("kinds", "expected " + std::to_string(charged) + " numbered releases, found " +
                       std::to_string(used.size()));
    for (const auto& [mechanism, count] : taken_) {
      std::uint64_t all = 0;
      for (const Charge& c : charges_.lines)
        if (!c.numbered && exact_text(c.release.mechanism) == mechanism) all += 2 * c.release.count;
      // A covariance of one column has nothing off its diagonal.
      if (count != all && !(count + 1 == all && certificate_.feature_noise > 0.0))
        add("kinds", mechanism + ": charged " + std::to_string(all) + " halves, released " +
                         std::to_string(count));
    }
    for (const Charge& c : charges_.lines)
      if (!c.numbered && !taken_.contains(exact_text(c.release.mechanism)))
        add("kinds", exact_text(c.release.mechanism) + ": charged, and never released");
  }

  /// The certificate's list of what the host released. Where a run was cut short, what was made
  /// after its last checkpoint may be missing from it, or not.
  void check_listed() {
    std::map<Listing, std::uint64_t> max_times, min_times, stated;
    for (const auto& entry : made_) ++max_times[std::get<2>(entry)];
    for (const auto& [place, kind] : listed_at_least_) ++min_times[kind];
    for (const Certificate::Listed& l : certificate_.noisy_values)
      stated[{l.what, l.numbers, l.sensitivity, l.noise_std, l.grid}] += l.times;
    std::map<Listing, std::uint64_t> all = max_times;
    all.insert(stated.begin(), stated.end());
    for (const auto& [kind, unused] : all) {
      const auto count = [&](const auto& counts) {
        const auto found = counts.find(kind);
        return found == counts.end() ? std::uint64_t{0} : found->second;
      };
      const std::uint64_t says = count(stated);
      const bool fits =
          says <= count(max_times) && (says >= count(min_times) || !certificate_.is_finished());
      if (!fits)
        add("kinds", std::get<0>(kind) + ", noise " + number(std::get<3>(kind)) +
                         ": the certificate lists " + std::to_string(says) + ", released were " +
                         std::to_string(count(max_times)));
    }
  }

  Certificate certificate_;
  Charges charges_;
  Settings settings_;
  std::vector<Record> records_;
  Kinds kinds_;
  std::uint64_t steps_per_epoch_ = 1;
  std::uint64_t totals_an_epoch_ = 0;
  Findings findings_;
  StepNumbers numbers_;
  Verdict verdict_;

  std::optional<Begin> begin_;
  std::set<std::array<std::uint32_t, 8>> keys_;
  std::uint64_t key_ = 0;  ///< number of the present one, of the transcript's
  std::optional<std::uint64_t>
      key_lines_;  ///< of the present one: keys that the ledger lost before
  std::uint64_t last_key_lines_ = 0;
  std::optional<Batch> batch_;
  std::optional<Release> sum_;      ///< that waits for its update
  std::vector<Measured> measured_;  ///< likewise
  std::uint64_t next_step_ = 0;
  std::optional<State> state_;
  std::map<std::uint64_t, std::uint64_t> states_;  ///< hashes, by steps done
  std::optional<bool> normalised_;
  std::map<std::pair<std::uint64_t, Place>, Release> places_;
  std::map<std::string, std::uint64_t> taken_;  ///< of charges without a number, in halves
  std::set<std::tuple<std::uint64_t, Place, Listing>> made_;
  std::map<Place, Listing> listed_at_least_;
  std::map<std::uint64_t, double> counts_, clips_;
  LineSearch line_search_;
  double quantile_low_ = -std::numeric_limits<double>::infinity();
  double quantile_high_ = std::numeric_limits<double>::infinity();
  std::map<std::uint64_t, std::pair<double, double>> norm_totals_;  ///< C and K' by epoch
};

template <class Run>
Verdict readable(Run run) {
  try {
    return run();
  } catch (const std::out_of_range& e) {
    throw std::invalid_argument(std::string("evidence: ") + e.what());
  }
}

}  // namespace

Verdict check(const Evidence& evidence) {
  return readable([&] { return Checker(evidence).run(); });
}

Verdict check_statements(const Evidence& evidence) {
  return readable([&] {
    const Certificate certificate = read_certificate(evidence.certificate);
    std::optional<Charges> charges;
    if (!evidence.ledger.empty()) charges = read_charges(evidence.ledger);
    Findings findings;
    hold_statements(certificate, charges ? &*charges : nullptr, Settings(evidence.settings),
                    kinds_of(certificate), findings);
    Verdict verdict;
    give(findings, verdict);
    return verdict;
  });
}

}  // namespace cudp::verify
