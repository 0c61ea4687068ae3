"""stop_words.py — the name of a language in, its words that say little out: articles, pronouns, prepositions and such.

The lists are short on purpose: a word that may name something ("will", "may", "can") stays. A model stores the words
that it leaves out, so that a longer list here never changes one.
"""

from __future__ import annotations

_WORDS = {
    "danish": """
        af alle at blev da de dem den denne der deres det dette dig din disse dog du efter eller en end er
        et for fra ham han har havde hendes her hun hvad hvis hvor i ikke ind jeg jer kan man med meget men
        mig min mit ned noget nogle nu når og også om op os over på selv sig sin sit skal som sådan til ud
        under var ved vi vil være
    """,
    "dutch": """
        aan alles als bij dan dat de der deze die dit doch door dus een en er ge geen had heb hebben heeft
        hem het hij hoe hun ik in is ja je kan me men met mij mijn na naar niet niets nog nu of om omdat ons
        onze ook op over te tegen toch toen tot u uit uw van veel voor want waren was wat we wel werd wezen
        wie wij zal ze zei zich zij zijn zo zonder zou
    """,
    "english": """
        a about after all also am an and any are as at be because been before being between both but by
        could did do does doing down during each few for from further had has have having he her here hers
        herself him himself his how i if in into is it its itself me more most my myself no nor not of off
        on once only or other our ours ourselves out over own same she should so some such than that the
        their theirs them themselves then there these they this those through to too under until up very was
        we were what when where which while who whom why with would you your yours yourself yourselves
    """,
    "finnish": """
        ehkä ei eivät emme en ennen et ette että he heidän heille heitä hän hänelle hänen hänet häntä ja jo
        joka jos jotka kanssa koska kuin kuka kun me meidän meille meitä mihin mikä minkä minua minun minä
        mitä molemmat mukaan mutta myös ne niiden niin niitä noin nyt näiden nämä olen oli olivat olla ollut
        on ovat se sekä sen siinä siitä sinun sinä sitä tai te teidän tuo tämä tämän tästä vaan vai vaikka
        vain
    """,
    "french": """
        afin ai ainsi après au aussi autre aux avec avoir car ce cela ces cet cette ceux chez comme contre
        dans de depuis des donc dont du elle elles en entre est et eu eux il ils je jusque la le les leur
        leurs lui là ma mais me mes moi mon même ne ni nos notre nous on ou où par pas pendant peu plus pour
        puis qu que quel quelle quelles quels qui sa sans se sera ses si son sont sous sur ta te tes toi ton
        tous tout toute toutes très tu un une vers vos votre vous y à être
    """,
    "german": """
        aber alle allem allen aller alles als also am an auch auf aus bei beim bin bis bist da damit dann
        das dass dein deine dem den denn der des dessen die dies diese diesem diesen dieser dieses doch dort
        du durch ein eine einem einen einer eines er es etwas euch euer für gegen hat hatte hier hinter ich
        ihm ihn ihnen ihr ihre im in indem ins ist jede jedem jeden jeder jedes jene kein keine man mein
        meine mich mir mit nach nicht nichts noch nun nur ob oder ohne sehr sein seine selbst sich sie sind
        so solche soll sondern sonst um und uns unser unter vom von vor war waren was weil welche wenn wer
        wie wir wird während zu zum zur zwar zwischen über
    """,
    "italian": """
        a ad agli ai al alla alle allo anche avere c che chi ci come con contro cui da dagli dai dal dalla
        dalle dallo degli dei del della delle dello di dove e ed era essere fra gli ha hanno ho i il in io
        la le lei li lo loro lui ma mi mia mio ne negli nei nel nella nelle nello noi non nostro o per
        perché più quale quanto quella quelle quelli quello questa queste questi questo se sei si sia sono
        su sua sue sugli sui sul sulla sulle suo tra tu tuo un una uno vi voi
    """,
    "norwegian": """
        alle at av bare ble da de deg dem den denne der deres det dette din disse du eller en er et etter
        for fordi fra før ha hadde han har henne her hun hva hvem hver hvis hvor hvordan i ikke inn jeg kan
        med meg men mer min mot ned noe noen nå når og også om opp oss over på seg selv sin sitt skal slik
        som så til ut uten var ved vi vil være å
    """,
    "portuguese": """
        a ao aos aquela aquele aqueles as até com como da das de dela dele deles depois do dos e ela elas
        ele eles em entre era essa esse esta este está eu foi há isso isto já lhe mais mas me mesmo meu
        minha muito na nas nem no nos nossa nosso num numa não nós o os ou para pela pelas pelo pelos por
        qual quando que quem se sem ser seu seus sob sobre sua suas são só também te tem tu um uma umas uns
        você às é
    """,
    "russian": """
        а без более бы был была были было быть в вам вас весь во вот все всего всех вы где да даже для до
        его ее если есть еще же за и из или им их к как ко когда кто ли между меня мне мы на над надо нас не
        него нее нет ни них но о об один он она они оно от по под при про с со так также там то того тоже
        только том ты у уже чем что чтобы эта эти это этого этот я
    """,
    "spanish": """
        a al algo ante antes como con contra cual cuando de del desde donde durante e el ella ellas ellos en
        entre era es esa ese eso esta estas este esto estos está fue ha han hasta hay la las le les lo los
        me mi mientras muy más nada ni no nos nosotros nuestra nuestro o os otra otro para pero poco por
        porque que quien se sea ser si sin sobre son su sus sí también tan te tiene todo todos tu tú un una
        uno unos y ya yo él
    """,
    "swedish": """
        alla att av blev bli blir de dem den denna deras dess det detta dig din dina du där då efter ej
        eller en er era ett från för ha hade han hans har henne hennes hon honom hur här i icke inom inte
        jag ju kan man med mellan men mig min mina mot mycket ni nu när någon något några och om oss på
        sedan sig sin sina ska som så sådan till under upp ut utan vad var vara varför vi vid vilken än är
        över
    """,
}

LANGUAGES = tuple(sorted(_WORDS))


def stop_words(language: str) -> tuple[str, ...]:
    """The words of one of LANGUAGES, sorted."""
    return tuple(sorted(set(_WORDS[language].split())))
