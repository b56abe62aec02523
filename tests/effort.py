"""How many examples a property is tried on: fewer in CI, many in the long run."""

from hypothesis import settings


def examples(usual: int) -> settings:
    """So many where the profile has 70; in CI it has half of that, in the long run 1,000."""
    share = settings.get_profile(settings.get_current_profile_name()).max_examples / 70
    return settings(max_examples=max(6, round(usual * share)))
