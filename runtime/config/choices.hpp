#pragma once
// Names of enumeration values, as options and certificates write them.
#include <span>
#include <string_view>

#include "kernels/layers/kinds.hpp"
#include "runtime/config/config.hpp"

namespace cudp {

template <class E>
struct Choice {
  std::string_view name;
  E value;
};

inline constexpr Choice<Clipping> kClippings[] = {{"flat", Clipping::flat},
                                                  {"per-layer", Clipping::per_layer},
                                                  {"automatic", Clipping::automatic}};
inline constexpr Choice<Sampling> kSamplings[] = {{"poisson", Sampling::poisson},
                                                  {"allocation", Sampling::allocation}};
inline constexpr Choice<Generator> kGenerators[] = {{"chacha20", Generator::chacha20},
                                                    {"philox", Generator::philox}};
inline constexpr Choice<Precision> kPrecisions[] = {{"tf32", Precision::tf32},
                                                    {"fp32", Precision::fp32}};
inline constexpr Choice<EvaluateWith> kEvaluateWith[] = {{"ours", EvaluateWith::ours},
                                                         {"cudnn", EvaluateWith::cudnn}};
inline constexpr Choice<SumBy> kSumBy[] = {
    {"auto", SumBy::automatic}, {"host", SumBy::host}, {"nccl", SumBy::nccl}};
inline constexpr Choice<RowsIn> kRowsIn[] = {
    {"auto", RowsIn::automatic}, {"memory", RowsIn::memory}, {"file", RowsIn::file}};
inline constexpr Choice<Features> kFeatures[] = {
    {"none", Features::none}, {"scatter", Features::scatter}, {"pca", Features::pca}};
inline constexpr Choice<Malformed> kMalformed[] = {{"refuse", Malformed::refuse},
                                                   {"missing", Malformed::missing}};
inline constexpr Choice<Normalise> kNormalises[] = {
    {"none", Normalise::none}, {"unit", Normalise::unit}, {"layer", Normalise::layer}};
inline constexpr Choice<privacy::AccountantKind> kAccountants[] = {
    {"pld", privacy::AccountantKind::best},
    {"rdp", privacy::AccountantKind::rdp},
    {"advanced", privacy::AccountantKind::advanced}};
inline constexpr Choice<OptimizerKind> kOptimizers[] = {{"sgd", OptimizerKind::sgd},
                                                        {"momentum", OptimizerKind::momentum},
                                                        {"nesterov", OptimizerKind::nesterov},
                                                        {"adam", OptimizerKind::adam},
                                                        {"adamw", OptimizerKind::adamw}};
inline constexpr Choice<ScheduleKind> kSchedules[] = {
    {"constant", ScheduleKind::constant},       {"step", ScheduleKind::step},
    {"cosine", ScheduleKind::cosine},           {"polynomial", ScheduleKind::polynomial},
    {"square-root", ScheduleKind::square_root}, {"adaptive", ScheduleKind::adaptive}};
inline constexpr Choice<Device> kDevices[] = {
    {"auto", Device::automatic}, {"cpu", Device::cpu}, {"cuda", Device::cuda}};

inline constexpr Choice<Loss> kTargetLosses[] = {{"squared", Loss::squared},
                                                 {"huber", Loss::huber}};

/// Returns the name that an enumeration value has in the list of choices; "" if it is not in the
/// list.
template <class E>
std::string_view choice_name(std::span<const Choice<E>> choices, E value) {
  for (const Choice<E>& c : choices)
    if (c.value == value) return c.name;
  return {};
}
inline std::string_view name_of(Clipping c) { return choice_name<Clipping>(kClippings, c); }
inline std::string_view name_of(Generator g) { return choice_name<Generator>(kGenerators, g); }
inline std::string_view name_of(Precision p) { return choice_name<Precision>(kPrecisions, p); }
inline std::string_view name_of(Normalise n) { return choice_name<Normalise>(kNormalises, n); }
/// Returns the name, in settings, of a loss for a regression target; "" if it is another loss.
inline std::string_view name_of(Loss l) { return choice_name<Loss>(kTargetLosses, l); }
inline std::string_view name_of(Features f) { return choice_name<Features>(kFeatures, f); }

}  // namespace cudp
