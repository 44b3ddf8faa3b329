#include "privacy/verify/fields.hpp"

#include <cmath>
#include <map>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "privacy/verify/field_comparison.hpp"
#include "privacy/verify/method_kinds.hpp"
#include "privacy/verify/stated_texts.hpp"

namespace cudp::verify {
namespace {

using Json = nlohmann::json;
using Texts = std::vector<std::string>;

Field number(const char* range, bool (*in_range)(double)) {
  return {.type = Field::Type::number, .range = range, .in_range = in_range};
}
Field positive() {
  return number("a number above 0", [](double x) { return x > 0.0; });
}
Field at_least_0() {
  return number("a number of at least 0", [](double x) { return x >= 0.0; });
}
Field inside_unit() {
  return number("a number in (0, 1)", [](double x) { return x > 0.0 && x < 1.0; });
}
Field rate() {
  return number("a number in (0, 1]", [](double x) { return x > 0.0 && x <= 1.0; });
}
/// Returns the requirements on a field whose value is a noise multiplier.
Field noise() {
  return number("a number of 1e-6 to 1e12", [](double x) { return x >= 1e-6 && x <= 1e12; });
}
Field is_one() {
  return number("1", [](double x) { return x == 1.0; });
}
Field power_of_two() {
  return number("a power of two", [](double x) {
    int exponent = 0;
    return x > 0.0 && std::frexp(x, &exponent) == 0.5;
  });
}
Field whole() {
  return {.type = Field::Type::whole,
          .range = "a whole number of at least 1",
          .in_range = [](double x) { return x >= 1.0; }};
}
Field one_of(Texts words) { return {.words = std::move(words)}; }
Field any_text() { return {}; }
/// Returns the requirements on a field whose value is a text of a fixed pattern, so that the field
/// cannot contain a free sentence. range: description of the pattern. fits(text): whether a text
/// has it.
Field word(const char* range, bool (*fits)(const std::string&)) {
  return {.range = range, .fits = fits};
}
Field version() { return word("a version", is_version); }
Field commit() { return word("a commit", is_commit); }
Field compiler() { return word("a compiler and its version", is_compiler); }
Field backend() { return word("a backend", is_backend); }
Field sha256() { return word("a SHA-256", is_sha256); }
Field earlier_training() {
  return word("what the program states of the file's own training", is_earlier_training);
}
Field of_type(Field::Type type) { return {.type = type}; }
Field flag() { return of_type(Field::Type::flag); }
Field object() { return of_type(Field::Type::object); }
Field objects() { return of_type(Field::Type::objects); }
Field texts() { return of_type(Field::Type::texts); }

/// Texts that a certificate may have in its fields `conversion` and `arithmetic`.
constexpr const char* kConversion = "Canonne, Kamath, Steinke 2020, Proposition 12";
constexpr const char* kRealNumbers = "proved for real numbers only";

/// Makes the list of all fields that a certificate may have, with the requirements on each, by
/// their path in the JSON. They depend on the method, the status and the settings of its run.
class Format {
 public:
  Format(const Json& json, const StatedNumbers& c, const Settings& s) : json_(json), c_(c), s_(s) {
    promises();
    if (c.status == "refused")
      of_count();
    else if (kinds_of(c).engine)
      of_sums();
    else if (c.method == "dp-agd")
      of_filter();
    else
      of_linear();
    data();
    running();
  }

  const std::map<std::string, Field>& fields() const { return fields_; }

 private:
  void must(const std::string& path, Field field) { fields_[path] = std::move(field); }
  void may(const std::string& path, Field field) {
    field.must = false;
    fields_[path] = std::move(field);
  }
  void must_if(bool there, const std::string& path, Field field) {
    if (there) must(path, std::move(field));
  }
  bool has(const char* key) const { return json_.contains(key); }
  bool is_method(const char* method) const { return c_.method == method; }
  bool is_allocated() const { return set("sampling", "allocation"); }
  bool set(const char* key, const char* value) const {
    return s_.has(key) && s_.text(key) == value;
  }

  void promises() {
    must("format", any_text());  // checked by the parser
    must("status", one_of({"finished", "not finished", "refused"}));
    must("for_release", flag());
    may("not_for_release", texts());  // compared with for_release elsewhere
    must("epsilon", at_least_0());
    must("delta", inside_unit());
    if (c_.holdout) {
      must("training_epsilon", at_least_0());
      must("training_delta", inside_unit());
      must("holdout", object());
      must("holdout.share", inside_unit());
      must("holdout.of",
           one_of({"units, each by a secret coin of its own; the others are trained on"}));
      if (json_["holdout"].contains("epsilon") || s_.has("holdout-epsilon")) {
        must("holdout.epsilon", positive());
        must("holdout.delta", inside_unit());
        must("holdout.sigma", noise());
        may("holdout.threshold",
            number("a number of 0 to 1", [](double x) { return x >= 0.0 && x <= 1.0; }));
        must("holdout.sensitivity", is_one());
        must("holdout.releases", whole());
        must("holdout.mechanism", one_of({"noisy figures of the held-out rows, once, and the noisy "
                                          "number of training examples"}));
      }
    }
    if (c_.tuning) tuning();
    if (!c_.unit.empty()) {
      must("unit", any_text());
      must("max_rows", whole());
    }
    must("neighbouring_relation",
         one_of({c_.unit.empty() ? "add or remove one training example"
                                 : "add or remove one unit: all rows with one text in the column "
                                   "'unit', of which the first max_rows are used"}));
    must("method", any_text());  // compared with the settings
    must("mechanism", one_of(mechanisms()));
    must("accountant_version", version());
    if (c_.status == "finished" && (c_.holdout || kinds_of(c_).engine))
      must("groups", {.type = Field::Type::groups, .words = {no_groups()}});
  }

  void tuning() {
    must("training_epsilon", at_least_0());
    must("training_delta", inside_unit());
    must("tuning", object());
    must("tuning.what", one_of({privacy::kSelection}));
    must("tuning.distribution", one_of({privacy::kStopping}));
    must("tuning.eta",
         number("a number in (-1, 8]", [](double x) { return x > -1.0 && x <= 8.0; }));
    must("tuning.gamma", inside_unit());
    must("tuning.cap", whole());
    must("tuning.expected_trainings",
         number("a number of at least 1", [](double x) { return x >= 1.0; }));
    must("tuning.grid", texts());
    must("tuning.grid_checksum", any_text());  // computed again elsewhere
    must("tuning.spending", objects());
    const std::string part = "tuning.spending[].";
    must(part + "of", one_of({"training", "score"}));
    must(part + "candidates", of_type(Field::Type::wholes));
    must(part + "spent", one_of({"releases", "renyi filter", "zcdp filter", "stated"}));
    for (const char* const name : {"order", "divergence", "rho", "epsilon"})
      may(part + name, positive());
    may(part + "delta", inside_unit());
    may(part + "delta_for_rounding", inside_unit());
    may(part + "releases", objects());
    may(part + "releases[].q", rate());
    may(part + "releases[].mechanism", one_of({"gaussian", "bounded-range", "approximate-dp"}));
    for (const char* const name : {"sigma", "epsilon", "delta"})
      may(part + "releases[]." + name, positive());
    for (const char* const name : {"steps", "count"}) may(part + "releases[]." + name, whole());
    must("tuning.bound", one_of({"profiles", "renyi"}));
    may("tuning.order", number("a number above 1", [](double x) { return x > 1.0; }));
    must("tuning.assumption", one_of({privacy::kTimeOfSelection}));
    may("tuning.size_release", object());
    if (!c_.tuning->count) return;
    must("tuning.size_release.what", one_of({privacy::kCountedOnce}));
    for (const char* const name : {"noise_std", "epsilon", "selection_epsilon"})
      must(std::string("tuning.size_release.") + name, positive());
    for (const char* const name : {"delta", "selection_delta"})
      must(std::string("tuning.size_release.") + name, inside_unit());
  }

  /// Returns the text by which a certificate must state why it has no table of epsilons for groups
  /// of units.
  std::string no_groups() const {
    if (c_.tuning) return "not stated: the settings were selected privately";
    if (c_.holdout)
      return "not stated: of several units some may be trained on and others held out, and both "
             "parts together are bounded for single units only";
    return "not stated: releases that depend on earlier ones are bounded for single " +
           std::string(c_.max_rows > 1 ? "units" : "examples") + " only";
  }

  Texts mechanisms() const {
    if (c_.status == "refused")
      return {"Gaussian noise on the number of training examples; nothing was trained"};
    if (is_method("dpis"))
      return {
          "importance-sampled Gaussian (DPIS), within Poisson-subsampled Gaussians admitted by a "
          "Renyi filter"};
    const std::string allocated =
        "Gaussian on randomly allocated batches (DP-SGD): each example in exactly one step of an "
        "epoch";
    if (is_allocated() && is_method("dpsgd-quantile"))
      return {allocated +
              ", of the sum of clipped gradients and the count of those below the clipping norm"};
    if (is_allocated() && kinds_of(c_).engine) return {allocated};
    if (is_method("dpsgd-quantile"))
      return {
          "Poisson-subsampled Gaussian (DP-SGD), of the sum of clipped gradients and the count "
          "of those below the clipping norm"};
    if (is_method("dp-agd"))
      return {"Gaussian sums and noisy minima chosen adaptively behind a zCDP filter (DP-AGD)"};
    if (is_method("objpert"))
      return {"objective perturbation with Gaussian noise, approximate minimum (AMP)"};
    if (is_method("outpert"))
      return {"Gaussian noise on the minimum of a strongly convex objective"};
    if (is_method("privgene"))
      return {"exponential mechanism on sums of clipped losses, once a parent (PrivGene)"};
    return {has("noise_over_time")
                ? "Poisson-subsampled Gaussians of different noise, fixed beforehand"
                : "Poisson-subsampled Gaussian (DP-SGD)"};
  }

  void sampled_releases(const std::string& path) {
    must(path, objects());
    must(path + "[].q",
         number("a number of 2^-32 to 1", [](double x) { return x >= 0x1p-32 && x <= 1.0; }));
    must(path + "[].sigma", noise());
    must(path + "[].steps", whole());
  }
  /// Adds the requirements on the list of releases of a run with random allocation: each entry
  /// counts epochs, each of which is one release. Entries for the number of examples, or for
  /// statistics for features, may stand before them.
  void allocated_releases(const std::string& path) {
    must(path, objects());
    may(path + "[].mechanism", one_of({"allocated-gaussian"}));
    may(path + "[].steps_per_epoch", whole());
    must(path + "[].sigma", noise());
    may(path + "[].epochs", whole());
    may(path + "[].q", number("1", [](double x) { return x == 1.0; }));
    may(path + "[].steps", whole());
  }
  void any_releases(const std::string& path) {
    must(path, objects());
    must(path + "[].mechanism", one_of({"gaussian", "bounded-range", "approximate-dp"}));
    may(path + "[].sigma", noise());
    may(path + "[].epsilon", positive());
    may(path + "[].delta", inside_unit());
    must(path + "[].count", whole());
  }

  void of_count() {
    sampled_releases("releases");
    must("accountant", any_text());
  }

  void of_sums() {
    must("sampling", one_of({is_method("dpis") ? "importance"
                             : is_allocated()  ? "allocation"
                                               : "poisson"}));
    must("q", rate());
    must("sampling_threshold", whole());
    must_if(is_allocated(), "steps_per_epoch", whole());
    must("sigma", positive());
    must("C", positive());
    must("clipping", any_text());  // compared with the settings
    must_if(is_method("adaclip"), "clipped",
            one_of({"gradients centred and scaled by numbers of earlier releases"}));
    must_if(is_method("norm-bound"), "C_is",
            one_of({"the longest gradient that any input of the public domain has; none is cut"}));
    must("sensitivity", positive());
    must("noise_std", positive());
    must("noise", object());
    must("noise.kind", one_of({"rounded gaussian"}));
    must("noise.grid", power_of_two());
    must("noise.proof", one_of({"privacy/README.md"}));
    may("noise_over_time", object());  // compared with the releases
    if (has("noise_over_time")) {
      must("noise_over_time.least", positive());
      must("noise_over_time.most", positive());
    }
    must("expected_batch", positive());
    must("steps", whole());
    must("steps_planned", whole());
    if (is_allocated())
      allocated_releases("releases");
    else
      sampled_releases("releases");
    must("accountant", any_text());  // computed again elsewhere
    must("epsilon_lower", at_least_0());
    may("loss_interval", positive());
    may("order",
        number("a number above 1, at most 1e6", [](double x) { return x > 1.0 && x <= 1e6; }));
    if (has("order")) {
      must("order_fixed_before", flag());
      must("conversion", one_of({kConversion}));
    }
    must("delta_for_rounding", positive());
    must_if(is_method("dpis"), "norm_total_noise", positive());
    if (is_method("dpsgd-quantile")) {
      must("quantile", object());
      must("quantile.target", inside_unit());
      for (const char* const clip : {"C_least", "C_most", "C_last"})
        must(std::string("quantile.") + clip, positive());
      must("quantile.gradient_noise_multiplier", positive());
      must("quantile.count_sensitivity", number("1/2", [](double x) { return x == 0.5; }));
      must("quantile.count_noise_std", positive());
    }
  }

  void of_filter() {
    const bool samples = s_.has("mini-batch") && s_.number("mini-batch") > 0.0;
    must("sampling", one_of({samples ? "poisson, counted as all examples" : "all examples"}));
    must_if(samples, "sampling_threshold", whole());
    must("C", positive());
    must("loss_clip", positive());
    must("sensitivity", positive());
    must("loss_sensitivity", positive());
    must("selection_noise", one_of({"gumbel", "laplace"}));
    must_if(set("noisy-min", "laplace"), "arithmetic", one_of({kRealNumbers}));
    must("steps", whole());
    any_releases("releases");
    must("filter", object());
    must("filter.kind", one_of({"zcdp"}));
    must("filter.rho", positive());
    must("filter.rho_spent", positive());
    must("filter.theorem", one_of({"Whitehouse, Ramdas, Rogers, Wu 2023, Theorem 1"}));
    must("accountant", one_of({"zcdp"}));
    must("conversion", one_of({kConversion}));
    must_if(set("conversion", "classical"), "budget_conversion",
            one_of({"Bun, Steinke 2016, Proposition 1.3"}));
  }

  void of_linear() {
    must("sampling", one_of({"all examples"}));
    any_releases("releases");
    if (is_method("privgene")) {
      must("loss_clip", positive());
      must("loss_sensitivity", positive());
      must("selection_epsilon", positive());
      for (const char* const count : {"generations", "candidates", "parents"}) must(count, whole());
      must("accountant", one_of({"zcdp"}));
      must("conversion", one_of({kConversion}));
      return;
    }
    must("noise_std", positive());
    must("regulariser", positive());
    must("max_norm", positive());
    may("huber", positive());  // only the Huber loss has it
    must("solver_tolerance", positive());
    if (is_method("outpert")) {
      must("sigma", positive());
      must("sensitivity", positive());
      must("grid", power_of_two());
      must("accountant", one_of({"gaussian"}));
      return;
    }
    must("sensitivity", is_one());
    must("kappa", positive());
    must("output_noise_std", positive());
    must("output_sensitivity", positive());
    must("arithmetic", one_of({kRealNumbers}));
    must("accountant", one_of({"objective perturbation"}));
    must("accounted",
         one_of(
             {"epsilon and delta are those of all releases together, the noisy size among them"}));
  }

  void data() {
    if (c_.status != "refused") may("noisy_values", objects());  // compared with the releases
    must("noisy_values[].what", any_text());
    for (const char* const count : {"times", "numbers"})
      must(std::string("noisy_values[].") + count, whole());
    must("noisy_values[].sensitivity", positive());
    must("noisy_values[].noise_std", positive());
    must("noisy_values[].grid", power_of_two());
    must("dataset", any_text());
    const bool scaled = s_.has("normalise") && s_.text("normalise") != "none";
    if (scaled) {
      must("normalise", object());
      must("normalise.how", one_of({s_.text("normalise")}));
      must("normalise.of", one_of({"each example's numbers by themselves"}));
    }
    may("features", any_text());  // compared with the settings
    const bool pca = set("features", "pca");
    if (pca || set("feature-standardise", "true")) {
      must("feature_release", object());
      must("feature_release.what",
           one_of({pca ? "covariance of rows clipped to norm 1, with Gaussian noise"
                       : "channels' means and mean squares, rows of them clipped to norm 1, with "
                         "Gaussian noise"}));
      must("feature_release.sigma", positive());
      must("feature_release.sensitivity", is_one());
      must_if(pca, "feature_release.dimensions", whole());
    }
    must_if(s_.has("class-weights") && !s_.text("class-weights").empty(), "class_weights",
            of_type(Field::Type::numbers));
    if (c_.size_noise > 0.0) {
      must("size_release", object());
      must("size_release.noisy_size", whole());
      must("size_release.noise_std", positive());
      may("size_release.epsilon", positive());
      may("size_release.delta", inside_unit());
      may("after_size_release", object());
      must("after_size_release.epsilon", positive());
      must("after_size_release.delta", inside_unit());
      must("after_size_release.composition",
           one_of({"basic: whatever follows from the noisy size, both parts add up"}));
    } else {
      must("training_examples", whole());
    }
  }

  void running() {
    must("precision", any_text());  // compared with the settings, like rng
    must("rng", any_text());
    must("seeded", flag());
    must("unsafe_flags", texts());
    may("assumptions", texts());
    if (s_.has("init")) {
      must("public_inputs", objects());
      must("public_inputs[].what", one_of({"initial weights"}));
      // config.toml has "./" before the name of a file that could be taken for another name.
      const std::string file = s_.text("init");
      must("public_inputs[].file", one_of({file.starts_with("./") ? file.substr(2) : file}));
      must("public_inputs[].sha256", sha256());  // compared with the released model
      must_if(s_.has("freeze"), "public_inputs[].frozen", texts());
      must("public_inputs[].guarantee",
           one_of({"does not cover the file: that no training example decided it is an "
                   "assumption"}));
      may("public_inputs[].not_counted", earlier_training());
    }
    for (const char* const name : {"allow_weak_privacy", "fresh_noise_allowed"})
      may(name, flag());  // compared with the settings
    // The certificate must have both of these fields, or neither.
    const bool lost = has("keys_lost") || has("releases_repeated");
    must_if(lost, "keys_lost", whole());
    must_if(lost, "releases_repeated",
            {.type = Field::Type::whole, .range = "a whole number", .in_range = [](double x) {
               return x >= 0.0;
             }});
    must("warnings", texts());
    must("hyperparameter_tuning", one_of({c_.tuning ? privacy::kCounted : privacy::kNotCounted}));
    must("test_set",
         one_of({"none", "public; read for test_accuracy only, not covered by the guarantee",
                 "not public: what was measured on it is not released, nor covered by the "
                 "guarantee"}));
    may("pages", whole());  // compared with the files elsewhere
    must("build", object());
    must("build.program", one_of({"cudp"}));
    must("build.version", version());
    must("build.commit", commit());
    must("build.compiler", compiler());
    must("build.backend", backend());
  }

  const Json& json_;
  const StatedNumbers& c_;
  const Settings& s_;
  std::map<std::string, Field> fields_;
};

}  // namespace

std::vector<std::string> check_fields(const Json& json, const StatedNumbers& certificate,
                                      const Settings& settings) {
  const Format format(json, certificate, settings);
  return compare_fields(json, format.fields());
}

}  // namespace cudp::verify
