"""B3: the generated full-text column, in each row's own language; no code keeps it in step."""

from django.contrib.postgres.search import SearchVector, SearchVectorField
from django.db.models import Case, Value, When

# Languages with a stemmer in every PostgreSQL; any other is indexed word by word.
CONFIGURATIONS = {
    "en": "english",
    "de": "german",
    "fr": "french",
    "es": "spanish",
    "it": "italian",
    "nl": "dutch",
    "pt": "portuguese",
}
UNKNOWN_CONFIGURATION = "simple"


def search_vector(*columns: str) -> Case:
    """Build the expression of a generated column over `columns`, by the row's `language`."""
    return Case(
        *(
            When(language=language, then=SearchVector(*columns, config=configuration))
            for language, configuration in CONFIGURATIONS.items()
        ),
        default=SearchVector(*columns, config=Value(UNKNOWN_CONFIGURATION)),
        output_field=SearchVectorField(),
    )
